"""Addresses: what counts as one, for all modules. Pure."""

from __future__ import annotations

import ipaddress
import re


def is_loopback(address: str) -> bool:
    """Return whether only the machine itself is reached by it: 127.0.0.0/8, ::1, in either notation, or localhost.

    False for what is not an address, such as another name.
    """
    if address == "localhost":
        return True
    try:
        found = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    # Python says so of a mapped address itself from 3.13 on.
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or bool(mapped and mapped.is_loopback)


def bare_address(text: str) -> str:
    """Return an address as `ss` prints it, without brackets and zone: `[fe80::1]%eth0` is `fe80::1`."""
    return re.sub(r"%[^\]]*", "", text).strip("[]")
