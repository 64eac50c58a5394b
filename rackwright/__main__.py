"""`python -m rackwright`."""

from __future__ import annotations

import sys

from rackwright.cli.main import main

sys.exit(main())
