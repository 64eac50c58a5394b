"""The mark of a host that an operator has drained for maintenance, and the host's boot ID."""

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
