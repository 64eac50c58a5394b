"""The hub or registry itself, by its files' URLs: for the host that fetches first."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlparse

from rackwright.hostside.hand_on import pieces
from rackwright.hostside.hand_on.failures import HandOnError, NoPiecesError
from rackwright.hostside.hand_on.holding import Holding
from rackwright.hostside.hand_on.pieces import PIECE
from rackwright.hostside.hand_on.rate_limit import RateLimit
from rackwright.hostside.hand_on.receive import BROKEN, receive, words
from rackwright.hostside.hand_on.report import PullReport

NAME = "the hub"
FATAL = {401: "refuses the token", 403: "refuses the token", 404: "has no such file"}


class _Redirects(urllib.request.HTTPRedirectHandler):
    """The token is for the hub: not for a redirect's target on another server, nor in clear."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and _server(newurl) != _server(req.full_url):
            request.headers.pop("Authorization", None)
        return request


class HubFiles:
    """Where files come from when no host has them. Raises NoPiecesError where another try may help."""

    def __init__(self, url: str, token: str | None, stall: float) -> None:
        self.url, self.token, self.stall = url, token, stall
        self.opener = urllib.request.build_opener(_Redirects)

    def fill(self, holding: Holding, limit: RateLimit, report: PullReport) -> None:
        """Add the missing bytes of a file, piece by piece."""
        with self._open(holding) as response:
            while holding.have < holding.file.size:
                data = receive(response, pieces.length(holding.file.size, holding.have // PIECE), limit, self.stall)
                holding.add(data, pieces.sha256(data), NAME)
                report.add(len(data), NAME)

    def _open(self, holding: Holding) -> Any:
        headers = {"Range": f"bytes={holding.have}-", "Accept-Encoding": "identity", "User-Agent": "rackwright"}
        request = urllib.request.Request(self.url + quote(holding.file.path), headers=headers)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            response = self.opener.open(request, timeout=self.stall)
        except urllib.error.HTTPError as error:
            raise _refused(error, holding.file.path) from None
        except BROKEN as error:
            raise NoPiecesError(words(error)) from None
        self._compare(response, holding)
        return response

    def _compare(self, response: Any, holding: Holding) -> None:
        """Skip what is here where the hub knows no ranges. Raises HandOnError where its file has another size."""
        missing = holding.file.size - holding.have
        size = int(response.headers.get("Content-Length", missing))
        if response.status == 200 and size == holding.file.size:
            for _ in range(holding.have // PIECE):
                receive(response, PIECE, RateLimit(None), self.stall)
        elif size != missing:
            raise HandOnError(f"{holding.file.path}: the hub's file has another size than the lock says")


def _refused(error: urllib.error.HTTPError, path: str) -> Exception:
    if error.code in FATAL:
        return HandOnError(f"{path}: the hub {FATAL[error.code]} ({error.code})")
    after = error.headers.get("Retry-After", "") if error.headers else ""
    return NoPiecesError(f"it answers {error.code}", float(after) if after.isdigit() else 0)


def _server(url: str) -> tuple[str, str]:
    return urlparse(url).scheme, urlparse(url).netloc
