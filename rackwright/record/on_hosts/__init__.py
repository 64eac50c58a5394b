"""What hosts keep of a run, so that an operator without its record can resume it."""
