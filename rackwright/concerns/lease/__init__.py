"""The lease of a host: one writer at a time, by a number that only rises. Values, parsing and texts; pure.

A host stores the fence (the last number issued, which survives a reboot) and, while a run writes, the lease.
Its times are seconds of the host's own monotonic clock, so setting the clock cannot end it.
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
