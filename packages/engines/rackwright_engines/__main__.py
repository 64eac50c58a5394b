"""`python -m rackwright_engines`."""

import sys

from rackwright_engines.command import console

sys.exit(console())
