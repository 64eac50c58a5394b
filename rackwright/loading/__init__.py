"""The files of a site become settings, and the engines judge them."""
