"""Fetches the files of ShareGPT, Spec-Bench and BurstGPT from a hub or mirror that the user names, to the user's cache.

None of them is shipped. A file counts by its SHA-256 alone: the site's lock file has it from the first time on, the
suite may have it, and the hub publishes it.
"""

from __future__ import annotations

import errno
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rackwright.adapter.concurrency import sleep
from rackwright.messages import RackwrightError, SettingsError, writing
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright.sources.errors import SourceError
from rackwright.sources.http import Client
from rackwright.sources.opener import host_of
from rackwright.sources.shapes import Revision, Tree, TreeFile, shaped
from rackwright_bench.aiperf.environment import alone
from rackwright_bench.suites.prompts import LOCK, locked, note_digests, published, rows, store
from rackwright_bench.suites.suite import DataSet, Suite
from rackwright_engines.nearest import nearest

PUBLISHED = "published"
"""Stands for the address at which each file was published."""
FILES = (".json", ".jsonl", ".csv")
"""Ends of an address of one file; any other is a folder's."""
CHUNK = 1 << 20
ATTEMPTS = 4
PAUSE = 2.0
"""Seconds before the second attempt, twice as many before each later one."""
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO})
"""Errors of the disk, and of no server."""
BUSY = frozenset({429, 500, 502, 503, 504})
"""Answers of a server that may have the file a moment later."""
SHOWN = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Expected:
    """A SHA-256 that is known of a file before it is there; empty: none is."""

    sha256: str = ""
    by: str = ""
    """Whose word that is."""
    next: str = "another address"
    """The thing to do where the file has another one."""


@dataclass(frozen=True)
class Origin:
    """An address of a file, and what is known of its bytes."""

    url: str
    expected: Expected = Expected()
    login: Secret | None = None

    @property
    def sha256(self) -> str:
        """The file's SHA-256; empty where none was published."""
        return self.expected.sha256


def fetch_requests(
    suite: Suite, sources: Sequence[str], settings: HostSettings, root: Path, say: Callable[[str], None]
) -> list[str]:
    """Have the file of each set of a suite that is read from one and names no path; returns the sets' names.

    sources: `published`, the address of a folder that has the files by their names, or SET=URL; the last one that has
    a set counts. Raises RackwrightError.
    """
    wanted = {name: data for name, data in suite.datasets.items() if data.kind != "random" and data.path is None}
    everywhere, by_set = _sources(sources, wanted)
    client = Client(settings)
    for name, data in wanted.items():
        source = by_set.get(name, everywhere)
        if not source:
            raise SettingsError(f"--fetch: no address for {name}; next: --fetch {name}=URL", code="RW1567")
        expected = _expected(name, data, source, locked(root).get(name, ""))
        if expected.sha256 and (store() / expected.sha256).exists():
            say(f"{name}: is there already, by its SHA-256")
            continue
        origin = _origin(client, data, source, settings)
        if expected.sha256 and origin.sha256 not in ("", expected.sha256):
            raise _other_bytes(name, origin.url, origin.sha256, expected)
        _keep(
            client, name, data, replace(origin, expected=expected) if expected.sha256 else origin, suite.seed, root, say
        )
    return list(wanted)


def _sources(sources: Sequence[str], wanted: Mapping[str, DataSet]) -> tuple[str, dict[str, str]]:
    """Return what counts for all sets, and for single ones. Raises SettingsError for what is neither."""
    everywhere, by_set = "", dict[str, str]()
    for text in sources:
        name, equals, url = text.partition("=")
        if text == PUBLISHED or _is_address(text):
            everywhere = text
        elif equals and name in wanted and _is_address(url):
            by_set[name] = url
        else:
            hint = nearest(name, [*wanted, PUBLISHED])
            form = f"{PUBLISHED}, https://HOST/FOLDER, or SET=URL with a set of {', '.join(wanted) or 'none'}"
            shown = re.sub(r"//[^/@]*@", "//…@", text)
            raise SettingsError(f"--fetch {shown}: must be {form}{hint}; nothing was fetched", code="RW1567")
    return everywhere, by_set


def _expected(name: str, data: DataSet, source: str, in_lock_file: str) -> Expected:
    """Return what is known of a file: by the site's lock file, by the suite, or because it was published so.

    The last counts for its own address, and for a mirror that has it by its name. An address of one file may be of
    another selection, whose first bytes count.
    """
    if in_lock_file:
        return Expected(in_lock_file, LOCK, f"another address, or remove its line from {LOCK}")
    if data.sha256:
        return Expected(data.sha256, "the suite", "another address, or correct its sha256 in the suite")
    if source.endswith(FILES) or "sha256" not in (file := published(data.kind)):
        return Expected()
    another = f"--fetch {name}=URL of one file takes another selection"
    return Expected(file["sha256"], f"the published {file['file']}", f"another address; {another}")


def _is_address(text: str) -> bool:
    """Return True for an address of HTTP without a login: `ps` and messages would show it."""
    return text.startswith(("https://", "http://")) and bool(host_of(text)) and "@" not in text


def _origin(client: Client, data: DataSet, source: str, settings: HostSettings) -> Origin:
    file = published(data.kind)
    if source != PUBLISHED:
        is_folder = not source.endswith(FILES)
        return Origin(f"{source.rstrip('/')}/{file['file']}" if is_folder else source)
    if "url" in file:
        return Origin(file["url"])
    return _on_hub(client, settings, file["hub"], file["file"])


def _on_hub(client: Client, settings: HostSettings, repository: str, file: str) -> Origin:
    """Return a data set's file at the hub's present commit, with the SHA-256 that the hub publishes of large files."""
    hub, token = settings.mirrors.hub.rstrip("/"), settings.models.hub_token
    login = Secret(f"Bearer {token.unmask()}") if token else None
    base, where = f"{hub}/api/datasets/{repository}", host_of(hub)
    commit = shaped(Revision, _listed(client, f"{base}/revision/main", login), where).sha
    for row in shaped(Tree, _listed(client, f"{base}/tree/{quote(commit)}", login), where).root:
        if row.get("path") == file:
            large = shaped(TreeFile, row, where).lfs
            sha256 = (large.oid or large.sha256) if large else ""
            expected = Expected(sha256, where) if sha256 else Expected()
            return Origin(f"{hub}/datasets/{repository}/resolve/{quote(commit)}/{quote(file)}", expected, login)
    raise SourceError(f"{where}: {repository} has no file {file}; next: --fetch SET=URL", code="RW1577")


def _listed(client: Client, url: str, login: Secret | None) -> Any:
    answer = client.get(url, {"Accept": "application/json"}, login)
    if answer.status != 200:
        raise SourceError(f"{url} answers {answer.status}; next: mirrors.hub, or --fetch SET=URL", code="RW1577")
    return answer.json()


def _keep(
    client: Client, name: str, data: DataSet, origin: Origin, seed: int, root: Path, say: Callable[[str], None]
) -> None:
    """Fetch one file, and keep it by its SHA-256 once it is what its kind has. Raises RackwrightError."""
    say(f"{name}: fetching {origin.url}")
    part = store() / f"{hashlib.sha256(origin.url.encode()).hexdigest()[:16]}.part"
    with alone(part), writing(part):
        store().mkdir(parents=True, exist_ok=True)
        _fetch(client, name, origin, part, say)
        content = part.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if origin.sha256 and digest != origin.sha256:
            part.unlink()
            raise _other_bytes(name, origin.url, digest, origin.expected)
        try:
            rows(name, data, content.decode(errors="replace"), seed)
        except SettingsError:
            part.unlink()
            raise
        part.replace(store() / digest)
    note_digests(root, {name: digest})
    by = f"as {origin.expected.by} has it" if origin.sha256 else f"from now on in {LOCK}"
    say(f"{name}: {len(content) / 1e6:.2f} MB, SHA-256 {digest}, {by}")


def _fetch(client: Client, name: str, origin: Origin, part: Path, say: Callable[[str], None]) -> None:
    """Fetch a file, where an earlier attempt ended."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            for size, whole in _received(client, origin, part):
                say(f"{name}: {size >> 20} of {f'{whole >> 20}' if whole else '?'} MiB")
            return
        except (HTTPException, OSError, SourceError) as error:
            if isinstance(error, OSError) and error.errno in UNWRITABLE:
                raise
            if attempt == ATTEMPTS or (isinstance(error, SourceError) and error.code == "RW1577"):
                raise _not_fetched(name, origin, error) from error
            sleep(PAUSE * 2 ** (attempt - 1))


def _not_fetched(name: str, origin: Origin, error: Exception) -> SourceError:
    """Return why a file is not there, and what to type: another address where this one has said that it has none."""
    why = getattr(error, "text", None) or str(error)
    if isinstance(error, SourceError) and error.code == "RW1577":
        way = f"--fetch {name}=URL, an address that has it"
    else:
        way = f"the same command again{', which continues' if origin.sha256 else ''}, or --fetch {name}=URL"
    return SourceError(f"{name}: {origin.url} could not be fetched: {why}; next: {way}", code="RW1577")


def _received(client: Client, origin: Origin, part: Path) -> Iterator[tuple[int, int]]:
    """Append what a server sends to a file; yields now and then how much is there, and how much it will be."""
    # Bytes of two attempts are one file where a SHA-256 says so.
    here = part.stat().st_size if origin.sha256 and part.exists() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={here}-"} if here else {})}
    with client.opened(origin.url, headers, origin.login) as answer:
        if here and answer.status == 416:  # it ends where the file does
            return
        if answer.status in BUSY:
            raise ConnectionError(f"{host_of(origin.url)} answers {answer.status}")
        if answer.status not in (200, 206):
            raise SourceError(f"{host_of(origin.url)} answers {answer.status}", code="RW1577")
        here = here if answer.status == 206 else 0
        promised = answer.headers.get("Content-Length", "")
        whole = here + int(promised) if promised.isdecimal() else 0
        with part.open("ab" if here else "wb") as target:
            shown = time.monotonic()
            while chunk := answer.read(CHUNK):
                target.write(chunk)
                here += len(chunk)
                if time.monotonic() - shown > SHOWN:
                    shown = time.monotonic()
                    yield here, whole
        if here < whole:
            raise ConnectionError(f"it ended after {here} of {whole} bytes")


def _other_bytes(name: str, url: str, digest: str, expected: Expected) -> RackwrightError:
    return RackwrightError(
        f"{name}: the SHA-256 of {url} is {digest}, and {expected.by} has {expected.sha256}; nothing was kept; next: "
        f"{expected.next}",
        code="RW1587",
    )
