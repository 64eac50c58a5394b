"""What the engines accept, as data, and the checks on it. Pure: nothing here touches a host."""

from __future__ import annotations

from rackwright.engines.check import check_options
from rackwright.engines.compare import compare
from rackwright.engines.finding import Finding, Level
from rackwright.engines.fix import fix
from rackwright.engines.host import check_endpoint, check_host

__all__ = ["Finding", "Level", "check_endpoint", "check_host", "check_options", "compare", "fix"]
