"""Asks for a key as the real servers do: 401 where it lacks on a guarded path, before any handler is reached."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Guard:
    """Lets a request pass on an open path, or with one of the keys as `Authorization: Bearer KEY`."""

    def __init__(self, app: ASGIApp, keys: Sequence[str], guarded: Callable[[str], bool]) -> None:
        self._app, self._keys, self._guarded = app, keys, guarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or hand on."""
        if scope["type"] != "http" or not self._guarded(scope["path"]) or self._has_key(Request(scope)):
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"error": "Unauthorized"}, status_code=401)(scope, receive, send)

    def _has_key(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and any(hmac.compare_digest(given, key) for key in self._keys)


def guard(application: Starlette, keys: Sequence[str], guarded: Callable[[str], bool]) -> Starlette:
    """Return the application, behind its keys when it has any."""
    if keys:
        application.user_middleware.append(Middleware(Guard, keys=keys, guarded=guarded))
    return application
