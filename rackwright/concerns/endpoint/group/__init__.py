"""An endpoint that several hosts serve together: what a member does that is not the head, and what the head asks first.

The head switches as any endpoint does. The others wait at their lifelines: they point at the release that the head
serves, start when it says so, and count a release as proven when the head has committed it.
"""
