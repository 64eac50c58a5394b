"""Finds an engine's archive in the package index that pip is configured for, and reads its Python files."""

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
from collections.abc import Iterator
from pathlib import Path

from rackwright.messages import SettingsError

LINK = re.compile(r"Found link (\S+)|not? .*compatible.*?: (\S+?)(?: \(from|$)")
KEPT = r"(?:^|/)({engine}/(?!.*(?:/models/|/test)).*\.py)$"
"""Files of an engine that are kept: all of its Python but the models, which are most of it, and the tests."""
SECONDS = 180
"""Patience with a silent index."""


def sources(engine: str, version: str, cache: Path) -> Path:
    """Folder with the Python files of one version, below `cache`; downloaded when it is not there yet.

    Raises SettingsError when the index has no such version, or its archive cannot be read.
    """
    folder = cache / engine / version
    if not folder.is_dir():
        name, url = archive(engine, version)
        _unpack(engine, name, _download(url), folder)
    return folder


def archive(engine: str, version: str) -> tuple[str, str]:
    """File name and address of a version's source archive, or else of a wheel.

    pip is asked for the addresses only: to download a source archive with it would run the archive's build.
    """
    links = [url for url in _links(engine) if _version(engine, url) == version]
    best = [url for url in links if _name(url).endswith(".tar.gz")] or [url for url in links if _fits(url)]
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
    return _name(url).removeprefix(f"{engine}-").removesuffix(".tar.gz").split("-")[0]


def _fits(url: str) -> bool:
    return _name(url).endswith(("none-any.whl", "x86_64.whl"))


def _download(url: str) -> bytes:
    trust = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    try:
        with urllib.request.urlopen(url, timeout=SECONDS, context=trust) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise SettingsError(f"{_name(url)} could not be downloaded: {error}") from error


def _unpack(engine: str, name: str, data: bytes, folder: Path) -> None:
    """Unpack the engine's own Python files; the rest of an archive is most of it and is not kept."""
    try:
        files = dict(_python_files(engine, name, data))
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise SettingsError(f"{name} is not a readable archive: {error}") from error
    if not files:
        raise SettingsError(f"{name} has no Python files of {engine}")
    new = folder.with_name(f"{folder.name}-new")
    for inside, text in files.items():
        (new / inside).parent.mkdir(parents=True, exist_ok=True)
        (new / inside).write_bytes(text)
    new.rename(folder)


def _python_files(engine: str, name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    inside = re.compile(KEPT.format(engine=engine))
    if name.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            for info in wheel.infolist():
                found = inside.search(info.filename)
                if found:
                    yield found[1], wheel.read(info)
        return
    # Unpacked as a whole, so that its check sum counts: tarfile ends quietly where spoilt bytes begin.
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as tar:
        for member in tar:
            found, content = inside.search(member.name), tar.extractfile(member)
            if found and content:
                yield found[1], content.read()
