"""What all tests share."""

import os
import signal
from importlib.util import find_spec

import pytest
from hypothesis import settings

if not find_spec("rackwright_engines"):
    pytest.exit("this environment was made before a package was added; next: scripts/setup")

pytest_plugins = ("tests.timelimits",)

# A busy machine is no failure: two cores also run the lab's hosts.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Workers of pytest-xdist have COLUMNS=80, and a table would take it for the terminal.
os.environ.pop("COLUMNS", None)

# A shell starts what it puts into the background with SIGINT ignored, and children inherit that: tests of Ctrl-C too.
signal.signal(signal.SIGINT, signal.default_int_handler)
