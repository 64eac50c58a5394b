"""`python -m rackwright`."""

from __future__ import annotations

import sys

from rackwright.commands.cli import main

sys.exit(main())
