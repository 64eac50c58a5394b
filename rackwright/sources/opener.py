"""The control machine's client: HTTP and HTTPS alone, redirects that never leave TLS, one limit of time.

urllib's own opener also reads files and FTP, and follows a redirect from https to http.
"""

from __future__ import annotations

import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPConnection, HTTPMessage, HTTPSConnection
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

from rackwright.adapter.concurrency import spawn
from rackwright.sources.errors import SourceError

Result = TypeVar("Result")

NAMING = 8.0
"""Seconds for a name's addresses: resolvers ask again after 5 s, and those of a closed network do not answer."""
CONNECTING = 10.0
"""Seconds for all addresses of a server to take a connection."""


def opener(
    tls: ssl.SSLContext, proxies: Mapping[str, str] | None, redirects: bool = True
) -> urllib.request.OpenerDirector:
    """Return an opener for http and https. proxies: by scheme; None takes those of the environment.

    redirects: follow them.
    """
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(None if proxies is None else dict(proxies)),
        urllib.request.UnknownHandler(),
        _Plain(),
        _Tls(tls),
        urllib.request.HTTPDefaultErrorHandler(),
        *([_Redirects()] if redirects else []),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made


def connect(
    address: tuple[str, int], timeout: float | None = None, source_address: tuple[str, int] | None = None
) -> socket.socket:
    """Return a connection to a server by its name. Raises OSError within seconds where it does not answer.

    timeout: seconds without a byte, once it is connected. Its parameters are those of `socket.create_connection`.
    """
    host, port = address
    try:
        found = within(NAMING, partial(socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM))
    except TimeoutError:
        raise TimeoutError(f"no resolver answers for its name within {NAMING:g} s") from None
    trouble: OSError = OSError("its name has no address")
    deadline = time.monotonic() + CONNECTING
    for *_, pair in found:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            break
        try:
            made = socket.create_connection((str(pair[0]), int(pair[1])), remaining, source_address)
        except OSError as error:
            trouble = error
        else:
            made.settimeout(timeout)
            return made
    raise trouble


class _PlainConnection(HTTPConnection):
    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self._create_connection = connect


class _TlsConnection(HTTPSConnection):
    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self._create_connection = connect


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_PlainConnection, req)


class _Tls(urllib.request.HTTPSHandler):
    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(context=tls)
        self._tls = tls

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_TlsConnection, req, context=self._tls)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects, none of them from https to anything else."""

    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Return the next request. Raises SourceError where it would leave TLS."""
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise SourceError(
                f"{host_of(req.full_url)} redirects from https to {newurl}, which is refused; check mirrors and proxy",
                code="RW0920",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def host_of(url: str) -> str:
    """Return a URL's host for a message, never its user or password; empty where it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Return what `work` returns, or raise what it raises.

    Raises TimeoutError after `seconds`. A thread, since names, TLS and headers that drip have no other limit in common.
    """
    ended: list[Result | BaseException] = []

    def carry_out() -> None:
        try:
            ended.append(work())
        except BaseException as error:
            ended.append(error)

    thread = spawn(carry_out)
    thread.join(seconds)
    if not ended:
        raise TimeoutError(f"no whole answer within {seconds:g} s")
    if isinstance(found := ended[0], BaseException):
        raise found
    return found
