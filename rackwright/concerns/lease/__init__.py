"""The lease of a host: one writer at a time, by a number that only ever rises. Values, parsing and texts; pure.

On a host lie the fence (the last number given away, which outlives a reboot) and, while somebody writes, the lease.
Its times are seconds of the host's own monotonic clock, so a clock that is set cannot end it.
"""

from rackwright.concerns.lease.concern import (
    BREAK,
    BREAKS,
    LAST_NUMBER,
    LEASE,
    LEASED,
    TTL,
    Lease,
    LeaseHolder,
    SeenLease,
    parse_lease,
    parse_seen,
    read_script,
    span,
    whose,
)

__all__ = [
    "BREAK",
    "BREAKS",
    "LAST_NUMBER",
    "LEASE",
    "LEASED",
    "TTL",
    "Lease",
    "LeaseHolder",
    "SeenLease",
    "parse_lease",
    "parse_seen",
    "read_script",
    "span",
    "whose",
]
