"""Kinds of failures, those that are worth a retry, and the message for each."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

REPEATED = {"limited", "server", "transient", "route", "stalled"}
TRIES = 4
MISTAKES = {"gated", "repository", "revision", "nothing", "moved", "name"}
"""Failures that only other settings can fix."""
MISTAKE = 78
"""Exit status (EX_CONFIG) for these."""
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
"""Errors of a file system that refuses root like any other user."""
ROUTE = {
    "ConnectError",
    "ConnectionError",
    "ConnectTimeout",
    "gaierror",
    "ProxyError",
    "NewConnectionError",
    "URLError",
}
CUT = {"TransportError", "RequestException", "TimeoutError", "timeout", "HTTPError", "HTTPException", "ProtocolError"}
"""Classes of errors: no connection, and one that broke. `timeout` is what Python 3.9 calls TimeoutError."""


class DownloadError(Exception):
    """A failure that ends a try. `wait`: seconds that the hub asks clients to wait."""

    def __init__(self, kind: str, text: str = "", wait: float = 0) -> None:
        super().__init__(text)
        self.kind, self.text, self.wait = kind, text, wait


def classify(error: BaseException) -> DownloadError:
    """Return the failure of an exception, for all versions of the library and of its HTTP clients."""
    if isinstance(error, DownloadError):
        return error
    causes = list(_causes(error))
    if any(isinstance(cause, OSError) and cause.errno == errno.ENOSPC for cause in causes):
        return DownloadError("full")
    refused = next((cause for cause in causes if _is_refused(cause)), None)
    if refused is not None:
        return DownloadError("denied", str(refused))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    text = _first_line(str(error))
    return _of_library(names, text) or _of_answer(causes, names, text) or _of_network(names, causes, text)


def _is_refused(cause: BaseException) -> bool:
    """Return True if a file was refused; a firewall may refuse a connection with the same number."""
    return isinstance(cause, OSError) and cause.errno in REFUSED and cause.filename is not None


def _of_library(names: set[str], text: str) -> DownloadError | None:
    kinds = {"GatedRepoError": "gated", "RevisionNotFoundError": "revision", "RemoteEntryNotFoundError": "file"}
    if "LocalEntryNotFoundError" not in names:
        kinds["EntryNotFoundError"] = "file"
    return next((DownloadError(kind, text) for name, kind in kinds.items() if name in names), None)


def _of_answer(causes: list[BaseException], names: set[str], text: str) -> DownloadError | None:
    response: Any = next((got for cause in causes if (got := _answer(cause)) is not None), None)
    status = int(getattr(response, "status_code", 0) or getattr(response, "code", 0) or 0)
    if status == 429:
        return DownloadError("limited", wait=_retry_after(response))
    if status in (401, 403) or "RepositoryNotFoundError" in names:
        return DownloadError("repository", str(status or 404))
    if status >= 500:
        return DownloadError("server", f"{status}: {text}")
    return DownloadError("answer", f"{status}: {text}") if status >= 400 else None


def _answer(cause: BaseException) -> Any:
    """Return the server's answer: what the library's clients raise has one, and urllib's error is one itself."""
    return cause if isinstance(cause, HTTPError) else getattr(cause, "response", None)


def _of_network(names: set[str], causes: list[BaseException], text: str) -> DownloadError:
    if any("certificate" in str(cause).lower() for cause in causes):
        return DownloadError("certificate", text)
    if "IncompleteRead" not in names and names & ROUTE:
        return DownloadError("route", text)
    if names & CUT or "onsistency check" in text:
        return DownloadError("transient", text)
    if "ModuleNotFoundError" in names:
        return DownloadError("library", text)
    return DownloadError("other", f"{type(causes[0]).__name__}: {text}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:300]


def _retry_after(response: Any) -> float:
    try:
        return float(response.headers.get("Retry-After", ""))
    except ValueError:
        return 0


TEXTS = {
    "gated:": (
        "{repository} is gated, and no models.hub_token is set",
        "accept the licence at {page}, set models.hub_token (ansible-vault encrypt_string), and run again",
    ),
    "gated:token": (
        "{repository} is gated, and the account of models.hub_token has no access to it",
        "accept the licence at {page} with that account, and run again",
    ),
    "repository:": (
        "{repository} was not found on the hub, or is private ({text})",
        "check model.repository and draft.repository; if it is private, set models.hub_token to one that may read it",
    ),
    "repository:token": (
        "{repository} was not found on the hub, or models.hub_token may not read it, or it has expired ({text})",
        "check model.repository and draft.repository, make a new token if need be, set models.hub_token, and run again",
    ),
    "revision": (
        "{repository} has no revision {revision} (404)",
        "check model.revision and draft.revision in group_vars, and run again",
    ),
    "file": (
        "{repository} at {revision} lacks a file that it lists (404): {text}",
        "run again later, or set another revision in group_vars",
    ),
    "limited": (
        "the hub limits how often this address or account may ask (429), and asks to wait {wait} s",
        "set models.hub_token (accounts have higher limits), or run again later; what arrived is kept",
    ),
    "server": ("the hub fails for {repository}: {text}", "run again later; what arrived is kept"),
    "transient": (
        "the connection to the hub broke again and again while fetching {repository}: {text}",
        "run again; what arrived is kept",
    ),
    "stalled": (
        "the download of {repository} stalled: no byte came for {text}, {tries} times",
        "look at the route to the hub, or set mirrors.hub; run again, what arrived is kept",
    ),
    "route": (
        "no route: the hub cannot be reached for {repository}: {text}",
        "set proxy or mirrors.hub in group_vars, and run again",
    ),
    "certificate": (
        "the hub's certificate is not trusted: {text}",
        "set paths.private_ca if the site has its own authority, and run again",
    ),
    "full": (
        "the disk is full: {target} does not fit. {text}",
        "free space there (df -h {folder}), or set models.folder; run again, what arrived is kept",
    ),
    "bytes": (
        "{repository}: {text} arrived with wrong bytes, twice; it was not taken",
        "something on the way changes it (a proxy, a mirror); run again: only this file is fetched again",
    ),
    "locked": (
        "{repository} at {revision} is not what the lock file has: {text}",
        "something on the way changes it (a mirror), or the lock is of other bytes: rackwright pin INVENTORY compares",
    ),
    "name": (
        "{repository} has a file whose name leads out of its folder, or is Rackwright's own: {text}",
        "do not use this repository, or leave the file out by `exclude`",
    ),
    "readonly": (
        "{folder} is read-only for this host, and {target} lacks, or has with other bytes: {text}",
        "fill it from a host that may write there, or set models.folder to a folder of this host",
    ),
    "denied": (
        "the file system refuses this host's root: {text}",
        "let the server of the store allow it (its root_squash?), or set models.folder to a folder of this host",
    ),
    "changed": (
        "another process wrote to {text} while it was being verified",
        "find out who writes to {folder}, and run again",
    ),
    "nothing": (
        "no file of {repository} matches include and exclude",
        "check the patterns of this model in group_vars",
    ),
    "busy": ("nothing can be locked in {text}", "mount the store with locks, or set models.folder to one of this host"),
    "moved": (
        "{target} holds commit {text}, and another one is wanted",
        "set another `directory` for this revision in group_vars, or remove the folder",
    ),
    "neighbours": (
        "no host of this run hands {repository} on whole: {text}",
        "look at the lines above, and at the other hosts; run again, what arrived is kept; or set "
        "downloads.hand_on.hub: true, so that this host asks the hub",
    ),
    "library": ("the image cannot download: {text}", "use an image that brings huggingface_hub"),
}
"""Problem and next step, by kind; `gated` and `repository` also by whether a token is set."""


def explain(failure: DownloadError, repository: str, revision: str, token: bool, target: str) -> list[str]:
    """Return the problem, then the next step, as lines for people."""
    by_token = f"{failure.kind}:{'token' if token else ''}"
    other = ("{repository} could not be fetched: {text}", "run again; what arrived is kept")
    values = {
        "repository": repository,
        "revision": revision,
        "target": target,
        "folder": target.rpartition("/")[0],
        "text": failure.text,
        "wait": f"{failure.wait:.0f}",
        "tries": TRIES,
        "page": f"https://huggingface.co/{repository}",
    }
    return [template.format(**values).rstrip() for template in TEXTS.get(by_token) or TEXTS.get(failure.kind) or other]
