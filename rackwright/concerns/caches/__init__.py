"""The caches of a host: what is there, for whom, when it was verified; what nothing needs, and what is damaged.

`rackwright cache` reads it beside a whole reading, and makes changes of the concerns that keep models, images and
encodings; a deploy has no such step.
"""
