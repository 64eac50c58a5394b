"""What all tests share."""

import os
import signal
from importlib.metadata import entry_points

import pytest
from hypothesis import settings

if not {"bench", "lab"} <= entry_points(group="rackwright.commands").names:
    pytest.exit("this environment was made before a package was added; next: scripts/setup")

pytest_plugins = ("tests.timelimits",)

# A busy machine is not a failure: two cores also run the lab's hosts.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Workers of pytest-xdist have COLUMNS=80, and a table would take it for the terminal.
os.environ.pop("COLUMNS", None)

# A shell starts what it puts into the background with SIGINT ignored, and children inherit that: tests of Ctrl-C too.
signal.signal(signal.SIGINT, signal.default_int_handler)
