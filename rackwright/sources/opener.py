"""What the control machine's client may open: HTTP and HTTPS alone, redirects that never leave TLS, one limit of time.

urllib's own opener also reads files and FTP, and follows a redirect from https to http.
"""

from __future__ import annotations

import ssl
import threading
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPMessage
from typing import IO, TypeVar
from urllib.parse import urlsplit

from rackwright.sources.errors import SourceError

Result = TypeVar("Result")


def opener(tls: ssl.SSLContext, proxies: Mapping[str, str] | None) -> urllib.request.OpenerDirector:
    """Return an opener for http and https. proxies: by scheme; None takes those of the environment."""
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(None if proxies is None else dict(proxies)),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=tls),
        urllib.request.HTTPDefaultErrorHandler(),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made


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

    # By its module: gevent has put its own there by now, where a command connects.
    thread = threading.Thread(target=carry_out, daemon=True)
    thread.start()
    thread.join(seconds)
    if not ended:
        raise TimeoutError(f"no whole answer within {seconds:g} s")
    if isinstance(found := ended[0], BaseException):
        raise found
    return found
