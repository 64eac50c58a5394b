"""What hosts keep of a run, so that somebody without its record can resume it."""
