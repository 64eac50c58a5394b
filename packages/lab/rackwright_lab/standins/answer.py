"""Requests and answers of a lab web server, free of sockets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request. `path` is decoded and without its query; header names are lower-case."""

    method: str
    host: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """Return the bearer token, or ""."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""


@dataclass(frozen=True)
class Answer:
    """One response: its body is `data`, or the file when there is one (then ranges are served)."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    file: Path | None = None

    def size(self) -> int:
        """Return the whole body's length in bytes."""
        return self.file.stat().st_size if self.file is not None else len(self.data)


def json_answer(body: Any, status: int = 200, **headers: str) -> Answer:
    """Return `body` as JSON; header names are given with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"Content-Type": "application/json; charset=utf-8", **named}, json.dumps(body).encode())


def error_answer(status: int, code: str, message: str, **headers: str) -> Answer:
    """Return an error as the model hub words it: in headers for its client, in JSON for people."""
    coded = {"X_Error_Code": code} if code else {}
    return json_answer({"error": message}, status, X_Error_Message=message, **coded, **headers)
