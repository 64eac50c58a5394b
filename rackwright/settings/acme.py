"""The authority that gives a gateway its certificate by ACME (RFC 8555)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rackwright.settings.sections import HTTPS, Frozen, Line

LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"
EMAIL = r"^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,190}$"


class Acme(Frozen):
    """Certificates by ACME for the names of a gateway, proven by HTTP at port 80, and renewed on the host itself."""

    email: Annotated[str, Field(pattern=EMAIL)]
    """Address of the account, which the authority may write to."""
    directory: Annotated[str, Field(pattern=HTTPS)] = LETS_ENCRYPT
    """URL of the authority's directory. Let's Encrypt's means that you agree to its terms."""
    roots: Line | None = None
    """PEM file in the site with the roots that the directory's own certificate is checked by; default: the host's."""
