"""HTTPS from the control machine, through the site's proxy and with its authority. Tokens never follow a redirect."""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from http.client import HTTPException, IncompleteRead, InvalidURL
from pathlib import Path
from typing import Any

from rackwright.concerns.proxy_values import values_of
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright.sources.errors import SourceError, UnreachableError
from rackwright.sources.opener import host_of, opener, within

SECONDS = 30
"""Seconds without a byte."""
WHOLE = 60
"""Seconds for one answer, from its name's address to its last byte."""
MOST = 8 << 20
"""Bytes of an answer: manifests and lists are asked for here, no weights; a registry's manifest has 4 MiB at most."""
_IN_A_HEADER = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True)
class HttpAnswer:
    """One answer, whatever its status; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON. Raises SourceError for another body: then another server has answered."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
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
        self._tls = trust

    def get(self, url: str, headers: Mapping[str, str], login: Secret | None = None) -> HttpAnswer:
        """Ask. `login`: the Authorization header, which stays with this server when it sends us elsewhere.

        Raises UnreachableError when the server does not answer at all.
        """
        if login and not _IN_A_HEADER.fullmatch(login.unmask()):
            raise SourceError(
                f"the key or token for {host_of(url)} holds a line break or another character that no HTTP header can "
                "carry; write it again with ansible-vault",
                code="RW0940",
            )
        try:
            return within(WHOLE, partial(self._answer, url, headers, login))
        except InvalidURL:
            # Its text quotes the address, where a password may stand.
            raise UnreachableError(
                f"{host_of(url)}: its address has a port that is not a number", code="RW0903"
            ) from None
        except HTTPException as error:
            raise UnreachableError(_no_http(url, error), code="RW0950") from None
        except (OSError, ValueError) as error:
            raise UnreachableError(_unreachable(url, error), code="RW0903") from None

    def opened(self, url: str, headers: Mapping[str, str], login: Secret | None = None) -> Any:
        """Return the answer to a question for a large file, open, whatever its status; to be read and closed.

        Raises UnreachableError when the server does not answer at all.
        """
        request = urllib.request.Request(url, headers={"User-Agent": "rackwright", **headers})
        if login:
            request.add_unredirected_header("Authorization", login.unmask())
        try:
            return self._opener(url).open(request, timeout=SECONDS)
        except urllib.error.HTTPError as error:
            return error
        except HTTPException as error:
            raise UnreachableError(_no_http(url, error), code="RW0950") from None
        except (OSError, ValueError) as error:
            raise UnreachableError(_unreachable(url, error), code="RW0903") from None

    def post(self, url: Secret, header: Secret | None, body: bytes, seconds: float) -> HttpAnswer:
        """Post JSON to an address that is itself a secret; it is in no message. A redirect is an answer as any other.

        seconds: without a byte. Raises UnreachableError when the server does not answer at all.
        """
        request = urllib.request.Request(
            url.unmask(), body, {"User-Agent": "rackwright", "Content-Type": "application/json"}, method="POST"
        )
        if header:
            name, _, value = header.unmask().partition(":")
            request.add_unredirected_header(name, value.strip())
        try:
            with self._opener(url.unmask(), redirects=False).open(request, timeout=seconds) as found:
                return HttpAnswer(found.status, _lower(found.headers), found.read(1 << 16))
        except urllib.error.HTTPError as error:
            with error:
                return HttpAnswer(error.code, _lower(error.headers), error.read(1 << 16))
        except HTTPException as error:
            raise UnreachableError(_no_http(url.unmask(), error), code="RW0950") from None
        except (OSError, ValueError) as error:
            raise UnreachableError(_unreachable(url.unmask(), error), code="RW0903") from None

    def _answer(self, url: str, headers: Mapping[str, str], login: Secret | None) -> HttpAnswer:
        request = urllib.request.Request(url, headers={"User-Agent": "rackwright", **headers})
        if login:
            request.add_unredirected_header("Authorization", login.unmask())
        deadline = time.monotonic() + WHOLE
        try:
            found = self._opener(url).open(request, timeout=SECONDS)
        except urllib.error.HTTPError as error:
            found = error
        with found:
            return HttpAnswer(found.status, _lower(found.headers), _body(url, found, deadline))

    def _opener(self, url: str, redirects: bool = True) -> urllib.request.OpenerDirector:
        if not self._proxies["http_proxy"]:
            return opener(self._tls, None, redirects)
        direct = any(goes_direct(host_of(url), pattern) for pattern in self._direct)
        proxies = {} if direct else {scheme: self._proxies[f"{scheme}_proxy"] for scheme in ("http", "https")}
        return opener(self._tls, proxies, redirects)


def _body(url: str, found: Any, deadline: float) -> bytes:
    """Return the body. Raises SourceError past the bound, TimeoutError past the deadline, IncompleteRead when cut."""
    body = bytearray()
    while chunk := found.read1(1 << 16):
        body += chunk
        if len(body) > MOST:
            raise SourceError(
                f"{host_of(url)} sends more than {MOST >> 20} MiB where a list is asked for: another program answers "
                "there; check mirrors, registry and proxy",
                code="RW0960",
            )
        if time.monotonic() > deadline:
            raise TimeoutError(f"no whole answer within {WHOLE} s")
    promised = found.headers.get("Content-Length", "")
    if promised.isdecimal() and len(body) < int(promised):
        raise IncompleteRead(b"", int(promised) - len(body))
    return bytes(body)


def _trust_too(trust: ssl.SSLContext, authority: Path) -> None:
    try:
        if authority.is_file():
            return trust.load_verify_locations(authority)
        why = "it is not a file"
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or str(error)
    raise SourceError(
        f"paths.private_ca: {authority} cannot be read; it is a PEM file on this machine: {why}", code="RW0901"
    )


def goes_direct(host: str, pattern: str) -> bool:
    """Return True if an entry of `no_proxy` is for a host: a name and all below it, a wildcard, address or network."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        pass
    name = pattern.lstrip(".")
    return host == name or host.endswith(f".{name}") or fnmatch(host, pattern)


def _lower(headers: Any) -> dict[str, str]:
    """Return the header names in lower case; a header that comes more than once is joined, as RFC 9110 (5.3) has it."""
    return {name.lower(): ", ".join(headers.get_all(name)) for name in headers}


def _no_http(url: str, error: HTTPException) -> str:
    kind = "its answer ends too early" if isinstance(error, IncompleteRead) else f"{type(error).__name__}"
    return (
        f"{host_of(url)} sent no valid HTTP answer ({kind}); another program may answer there; check mirrors and proxy"
    )


def _unreachable(url: str, error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    where = host_of(url)
    if isinstance(reason, ssl.SSLError):
        return f"the certificate of {where} is not trusted: {reason}; for the site's own authority set paths.private_ca"
    ways = "control_proxy (this machine), proxy (the hosts too) or mirrors"
    return f"{where} cannot be reached from this machine: {reason}; set {ways} in the settings"
