"""A run as one HTML file that needs nothing else: `make` draws a story, `write` puts it beside the run's record."""

from rackwright.fleet.report.page import page
from rackwright.fleet.report.writing import write

__all__ = ["page", "write"]
