"""Finds an engine's archives in the package index that pip is configured for, and reads their Python files."""

from __future__ import annotations

import gzip
import io
import os
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from packaging.version import InvalidVersion, Version

from rackwright.messages import SettingsError
from rackwright_engines.data import PRODUCTS
from scripts.engine_data.remote_file import RemoteFile

LINK = re.compile(r"Found link (\S+)|not? .*compatible.*?: (\S+?)(?: \(from|$)")
NAME = re.compile(r"([A-Za-z][A-Za-z0-9_-]*?)-([0-9][^-]*?)(?:\.tar\.gz|-[^/]*\.whl)")
"""A file of the index: the package, and its version."""
KEPT = r"(?:^|/)({package}/(?:(?!.*(?:/models/|/test)).*\.py|schemas/[^/]*\.json))$"
"""Files of an engine that are kept: all of its Python but the models, which are most of it, and the tests."""
STUBS = frozenset({"tensorrt-llm"})
"""Engines whose source archives in the index only name where the wheel is."""
LARGE = 64 << 20
"""Bytes of a wheel above which only the kept files are asked for: the others are programs for GPUs."""
BLOCK = 1 << 20
"""Bytes of one request for a part: Python files lie side by side in a wheel, so that one brings many."""
SECONDS = 180
"""Patience with a silent index."""


class NoSourceError(SettingsError):
    """An archive of the index that holds no source of its engine, such as TensorRT-LLM's on PyPI."""


def package_of(engine: str) -> str:
    """Return the name of an engine's package, which is that of its folder."""
    return engine.replace("-", "_")


def kept_files(engine: str) -> re.Pattern[str]:
    """Return the form of the paths of an engine's files that are kept."""
    return re.compile(KEPT.format(package=package_of(engine)))


def sources(engine: str, version: str, cache: Path) -> Path:
    """Folder with the Python files of one version, below `cache`; downloaded when it is not there yet.

    Raises SettingsError when the index has no such version, or its archive cannot be read.
    """
    folder = cache / engine / version
    if not folder.is_dir():
        name, url = archive(engine, version)
        with _opened(name, url) as file:
            unpack(engine, name, file, folder)
    return folder


def sources_of_file(file: Path, cache: Path) -> tuple[str, str, Path]:
    """Return the engine and version of an archive on this machine, and the folder with its Python files.

    Raises SettingsError for a file that is not an engine's archive.
    """
    engine, version = named(file.name)
    folder = cache / engine / version
    if not folder.is_dir():
        try:
            with file.open("rb") as content:
                unpack(engine, file.name, content, folder)
        except OSError as error:
            raise SettingsError(f"{file} cannot be read: {error}") from error
    return engine, version, folder


def named(name: str) -> tuple[str, str]:
    """Return the engine and the version that an archive's name has. Raises SettingsError for another name."""
    found = NAME.fullmatch(name)
    engine = _engine(found[1]) if found else ""
    if found is None or engine not in PRODUCTS:
        raise SettingsError(f"{name} must be an engine's archive by its name, such as vllm-0.14.1.tar.gz")
    return engine, found[2]


def _engine(package: str) -> str:
    return package.lower().replace("_", "-")


def newest(engine: str, candidates: bool) -> str:
    """Return the newest version of an engine in the index. Raises SettingsError where it has none.

    candidates: True to count release candidates too.
    """
    every = [_parsed(_version(engine, url)) for url in _links(engine)]
    fit = [one for one in every if one and not (one.is_devrelease or (one.is_prerelease and not candidates))]
    if not fit:
        raise SettingsError(f"the package index has no {engine}; next: pip index versions {engine}")
    return str(max(fit))


def archive(engine: str, version: str) -> tuple[str, str]:
    """File name and address of a version's source archive, or else of a wheel.

    pip is asked for the addresses only: to download a source archive with it would run the archive's build.
    """
    links = [url for url in _links(engine) if _version(engine, url) == version]
    archives, wheels = [url for url in links if _name(url).endswith(".tar.gz")], [url for url in links if _fits(url)]
    best = [*wheels, *archives] if engine in STUBS else [*archives, *wheels]
    if not best:
        raise SettingsError(f"the package index has no {engine} {version}; next: pip index versions {engine}")
    return _name(best[0]), best[0].split("#")[0]


def _links(engine: str) -> list[str]:
    command = [sys.executable, "-m", "pip", "index", "versions", "-vv", engine]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [url for found in LINK.findall(output) for url in found if url]


def _name(url: str) -> str:
    return url.split("#", maxsplit=1)[0].rpartition("/")[2]


def _version(engine: str, url: str) -> str:
    found = NAME.fullmatch(_name(url))
    return found[2] if found and _engine(found[1]) == engine else ""


def _parsed(version: str) -> Version | None:
    try:
        return Version(version)
    except InvalidVersion:
        return None


def _fits(url: str) -> bool:
    return _name(url).endswith(("none-any.whl", "x86_64.whl"))


def _opened(name: str, url: str) -> BinaryIO:
    """Return a large wheel to be read by parts, and any other archive whole."""
    if name.endswith(".whl"):
        trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
        try:
            remote = RemoteFile(url, trust, SECONDS)
        except (urllib.error.URLError, TimeoutError) as error:
            raise SettingsError(f"{name} could not be downloaded: {error}") from error
        if remote.size > LARGE:
            return io.BufferedReader(remote, BLOCK)
    return io.BytesIO(_download(url))


def _download(url: str) -> bytes:
    trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    try:
        with urllib.request.urlopen(url, timeout=SECONDS, context=trust) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise SettingsError(f"{_name(url)} could not be downloaded: {error}") from error


def unpack(engine: str, name: str, file: BinaryIO, folder: Path) -> None:
    """Unpack the engine's own Python files; the rest of an archive is most of it and is not kept.

    Raises SettingsError for a file that is not an archive, NoSourceError for one without these files.
    """
    try:
        files = dict(_python_files(engine, name, file))
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise SettingsError(f"{name} is not a readable archive: {error}") from error
    if not files:
        raise NoSourceError(f"{name} has no Python files of {engine}")
    save(files, folder)


def save(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files by their path below a folder, which is there whole or not at all."""
    new = folder.with_name(f"{folder.name}-new")
    for inside, text in files.items():
        (new / inside).parent.mkdir(parents=True, exist_ok=True)
        (new / inside).write_bytes(text)
    new.rename(folder)


def _python_files(engine: str, name: str, file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    inside = kept_files(engine)
    if name.endswith(".whl"):
        with zipfile.ZipFile(file) as wheel:
            for info in sorted(wheel.infolist(), key=lambda one: one.header_offset):
                found = inside.search(info.filename)
                if found:
                    yield found[1], wheel.read(info)
        return
    # Unpacked as a whole, so that its check sum counts: tarfile ends quietly where spoilt bytes begin.
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(file.read()))) as tar:
        for member in tar:
            found = inside.search(member.name) if member.isreg() else None
            if found and (content := tar.extractfile(member)):
                yield found[1], content.read()
