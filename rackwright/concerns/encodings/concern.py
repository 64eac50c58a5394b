"""The tiktoken vocabularies of gpt-oss: both files by size and SHA-256, so that a start needs no internet access.

Without them a server fetches them at its start; without internet access /health stays at 200 and only chat fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import host_script
from rackwright.paths import ENCODING_MARKS
from rackwright.plan.change import Change, Job, Owned, Shell
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import lines_of
from rackwright.settings.host_settings import ENDPOINTS, HostSettings


@dataclass(frozen=True)
class Encoding:
    """One vocabulary file as published."""

    file: str
    size: int
    sha256: str


ENCODING_FILES = (
    Encoding("o200k_base.tiktoken", 3_613_922, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    Encoding("cl100k_base.tiktoken", 1_681_126, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
)
"""Source: openai-harmony's own table of expected hashes, and the files themselves."""


@dataclass(frozen=True)
class SeenFile:
    """A file on the host: its SHA-256, and its mode and owner as `644:root`."""

    sha256: str
    mode: str


SeenEncodings = Mapping[str, SeenFile]


@dataclass(frozen=True)
class WantedEncodings:
    """The files that the host's endpoints need, their path and their source. No files: no endpoint needs them."""

    directory: str
    files: tuple[Encoding, ...]
    base: str
    proxy: Mapping[str, str]
    stall: int
    parallel: int | None
    """Hosts of a run that may fetch at the same time."""


def read(settings: HostSettings) -> str:
    """Print both files; the bytes are hashed only where no fetch has verified them (5 MB, some 15 ms)."""
    names = " ".join(encoding.file for encoding in ENCODING_FILES)
    return host_script("encodings_read", folder=settings.encodings.folder, names=names, marks=ENCODING_MARKS)


def parse(output: str) -> SeenEncodings:
    """Parse the lines: SHA-256, mode with owner, and name of each file."""
    rows = (row.split(" ", 2) for row in lines_of(output))
    return {name: SeenFile(sha256, mode) for sha256, mode, name in rows}


def wanted(settings: HostSettings, _: HostReading) -> WantedEncodings:
    """Return both files when any endpoint uses harmony, or when the host has no endpoints."""
    endpoints = settings.all_endpoints.values()
    needed = not endpoints or any(endpoint.harmony for endpoint in endpoints)
    return WantedEncodings(
        settings.encodings.folder,
        ENCODING_FILES if needed else (),
        settings.mirrors.encodings.rstrip("/"),
        proxy_values(settings),
        settings.downloads.stall_timeout,
        settings.downloads.parallel,
    )


def changes(wanted: WantedEncodings, reading: SeenEncodings) -> list[Change]:
    """Fetch what is missing or wrong; make correct but unreadable files readable to all."""
    return [change for encoding in wanted.files for change in _changes(wanted, encoding, reading.get(encoding.file))]


def repair_changes(settings: HostSettings, reading: HostReading) -> list[Change]:
    """Fetch the files that are there with wrong bytes, whether an endpoint needs them now or not."""
    files, source = reading[ENCODINGS], wanted(settings, reading)
    wrong = [one for one in ENCODING_FILES if one.file in files and files[one.file].sha256 != one.sha256]
    return [change for encoding in wrong for change in _changes(source, encoding, files[encoding.file])]


def _changes(wanted: WantedEncodings, encoding: Encoding, reading: SeenFile | None) -> list[Change]:
    path = f"{wanted.directory}/{encoding.file}"
    if reading is None or reading.sha256 != encoding.sha256:
        return [_fetch(wanted, encoding, path, reading)]
    if reading.mode != "644:root":
        step = Shell(host_script("open_file", path=path, sha256=encoding.sha256))
        return [
            Change(f"make {path} readable by all, owned by root", f"its mode and owner are {reading.mode}", (step,))
        ]
    return []


def _fetch(wanted: WantedEncodings, encoding: Encoding, path: str, reading: SeenFile | None) -> Change:
    url = f"{wanted.base}/{encoding.file}"
    mark = f"{ENCODING_MARKS}/{encoding.file}"
    published: dict[str, str | int] = {"size": encoding.size, "sha256": encoding.sha256}
    script = host_script("fetch_file", url=url, path=path, **published, stall=wanted.stall, mark=mark, **wanted.proxy)
    why = "it is not on the host" if reading is None else "its SHA-256 is not the published one"
    name, title = f"fetch-{encoding.file}", f"fetch {encoding.file}"
    job = Job(name, title, script, timeout=1800, at_once=wanted.parallel, code="RW2301")
    return Change(f"fetch {path} from {wanted.base}", why, (job,), owns=(Owned("file", path),), size=encoding.size)


TAKES = frozenset({ENDPOINTS, "encodings", "mirrors", "downloads", "proxy"})
"""Sections of the settings that it is handed."""
ENCODINGS: Concern[WantedEncodings, SeenEncodings] = Concern(
    "encodings", read, parse, wanted, changes, alone=True, takes=TAKES
)

__all__: Sequence[str] = ("ENCODINGS", "ENCODING_FILES", "Encoding", "SeenFile", "WantedEncodings")
