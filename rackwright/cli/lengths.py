"""Lengths of time as they are typed: `90s`, `30m`, `1h`, `7d`."""

from __future__ import annotations

import argparse
import re

from rackwright.messages import RackwrightError

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
LONGEST = 24 * 3600
"""Seconds that a host's own repairs and looks may be paused; more is a setting."""


def add_length(parser: argparse.ArgumentParser) -> None:
    """Add `--for LENGTH`, the length of a pause."""
    parser.add_argument("--for", dest="length", required=True, metavar="1h", help="how long: 90s, 30m, 1h; at most 24h")


def seconds_of(text: str, option: str = "--for", longest: int = LONGEST) -> int:
    """Return the seconds of a length as `1h` or `30m`. Raises RackwrightError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    if not 0 < seconds <= longest:
        most = f"{longest // 3600}h" if longest <= LONGEST else f"{longest // UNITS['d']}d"
        raise RackwrightError(
            f"{option} must be a length of at most {most}, as 90s, 30m or 1h, not {text!r}", code="RW1004"
        )
    return seconds
