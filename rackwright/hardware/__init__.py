"""A proven deploy as one file to send on: numbers and words of closed lists, and nothing that names its owner."""

from rackwright.hardware.writing import newest_with_rows, write_bundle

__all__ = ["newest_with_rows", "write_bundle"]
