"""Redirects of a hub: its files are on other servers, and the token is for the hub alone."""

from __future__ import annotations

import urllib.request
from typing import Any
from urllib.parse import urlparse


class TokenStays(urllib.request.HTTPRedirectHandler):
    """Follows redirects without the token where they lead to another server, or from TLS to clear text."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the request for the new address."""
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and server_of(newurl) != server_of(req.full_url):
            request.headers.pop("Authorization", None)
        return request


def server_of(url: str) -> tuple[str, str]:
    """Return what must be the same for a token to be sent: scheme and server."""
    return urlparse(url).scheme, urlparse(url).netloc
