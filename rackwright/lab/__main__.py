"""`python -m rackwright.lab`."""

from __future__ import annotations

from rackwright.lab.cli import main

raise SystemExit(main())
