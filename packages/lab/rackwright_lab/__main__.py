"""`python -m rackwright_lab`."""

from __future__ import annotations

from rackwright_lab.cli import main

raise SystemExit(main())
