"""The hosts of the lab that is up: they pose as DGX B200, and get what such hosts get."""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts

globals().update(build(__file__, {"lab": hosts()}, children={"b200": ["lab"]}))
