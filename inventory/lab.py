"""The hosts of the lab that is up: they look like DGX B200, and serve what the group above theirs does."""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts

globals().update(build(__file__, {"lab": hosts()}, children={"b200": ["lab"]}))
