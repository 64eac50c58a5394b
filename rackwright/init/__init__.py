"""A site's files: made once by `rackwright init`, and brought to a later version by `rackwright init --update`."""
