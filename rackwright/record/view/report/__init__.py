"""A run as one HTML file that needs nothing else: `make` draws a timeline, `write` puts it beside the run's record."""

from rackwright.record.view.report.page import page
from rackwright.record.view.report.writing import write

__all__ = ["page", "write"]
