"""HTTPS from the control machine, through the site's proxy and with its authority. Tokens never follow a redirect."""

from __future__ import annotations

import ipaddress
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rackwright.concerns.downloads import values_of
from rackwright.messages import RackwrightError
from rackwright.settings.model import HostSettings
from rackwright.settings.secret import Secret

SECONDS = 30
MOST = 64 << 20
"""Bytes of an answer at most: what is asked for here are lists, not weights."""


class SourceError(RackwrightError):
    """A registry or hub could not be asked, or said no."""


class NotThereError(SourceError):
    """The server has no such thing, or shows it to nobody without another key."""


class UnreachableError(SourceError):
    """There was no answer at all."""


@dataclass(frozen=True)
class HttpAnswer:
    """One answer, whatever its status; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises SourceError when it is none: then something else than the server has answered."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise SourceError(
                "the answer is no JSON: something on the way answered instead of the server", code="RW0902"
            ) from None


class Client:
    """Asks by GET, with proxy and authority of one host's settings; where no proxy is set, the environment's counts."""

    def __init__(self, settings: HostSettings) -> None:
        proxy = settings.control_proxy or settings.proxy
        self._proxies = values_of(proxy)
        self._direct = proxy.no_proxy
        trust = ssl.create_default_context()
        if settings.paths.private_ca:
            _trust_too(trust, settings.site / Path(settings.paths.private_ca).expanduser())
        self._tls = urllib.request.HTTPSHandler(context=trust)

    def get(self, url: str, headers: Mapping[str, str], login: Secret | None = None) -> HttpAnswer:
        """Ask. `login`: the Authorization header, which stays with this server when it sends us elsewhere.

        Raises UnreachableError when there is no answer at all.
        """
        request = urllib.request.Request(url, headers={"User-Agent": "rackwright", **headers})
        if login:
            request.add_unredirected_header("Authorization", login.unmask())
        try:
            with self._opener(url).open(request, timeout=SECONDS) as found:
                return HttpAnswer(found.status, _lower(found.headers), found.read(MOST))
        except urllib.error.HTTPError as error:
            return HttpAnswer(error.code, _lower(error.headers), error.read(MOST))
        except (OSError, ValueError) as error:
            raise UnreachableError(_unreachable(url, error), code="RW0903") from None

    def _opener(self, url: str) -> urllib.request.OpenerDirector:
        if not self._proxies["http_proxy"]:
            return urllib.request.build_opener(self._tls)
        host = urlsplit(url).hostname or ""
        direct = any(goes_direct(host, pattern) for pattern in self._direct)
        proxies = {} if direct else {scheme: self._proxies[f"{scheme}_proxy"] for scheme in ("http", "https")}
        return urllib.request.build_opener(urllib.request.ProxyHandler(proxies), self._tls)


def _trust_too(trust: ssl.SSLContext, authority: Path) -> None:
    try:
        if authority.is_file():
            return trust.load_verify_locations(authority)
        why = "it is no file"
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or str(error)
    raise SourceError(
        f"paths.private_ca: {authority} cannot be read; it is a PEM file on this machine: {why}", code="RW0901"
    )


def goes_direct(host: str, pattern: str) -> bool:
    """Whether one entry of `no_proxy` means a host: a name and all below it, a wildcard, an address, or a network."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        pass
    name = pattern.lstrip(".")
    return host == name or host.endswith(f".{name}") or fnmatch(host, pattern)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _unreachable(url: str, error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    where = urlsplit(url).hostname
    if isinstance(reason, ssl.SSLError):
        return f"the certificate of {where} is not trusted: {reason}; for the site's own authority set paths.private_ca"
    return f"{where} cannot be reached from this machine: {reason}; set proxy or mirrors in the settings"
