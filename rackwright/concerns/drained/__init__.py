"""The mark of a host that somebody has drained for maintenance, and which boot the host is in."""

from rackwright.concerns.drained.concern import (
    DRAINED,
    MARK,
    NO_BOOT,
    NO_BOOT_TEXT,
    Drained,
    SeenDrained,
    parse_mark,
    read_script,
)

__all__ = ["DRAINED", "MARK", "NO_BOOT", "NO_BOOT_TEXT", "Drained", "SeenDrained", "parse_mark", "read_script"]
