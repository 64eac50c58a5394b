"""A vault password that was typed, handed to ansible-vault: it lies in no file, argument or environment."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from pathlib import Path


def hand_out(password: str) -> Path:
    """A named pipe, for its owner only, that gives the password to one reader after another until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="rackwright-password-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pipe = folder / "password"
    os.mkfifo(pipe, 0o600)
    threading.Thread(target=_serve, args=(pipe, f"{password}\n".encode()), daemon=True).start()
    return pipe


def _serve(pipe: Path, text: bytes) -> None:
    fresh = pipe.with_suffix(".new")
    while pipe.exists():
        try:
            with pipe.open("wb", buffering=0) as reader:
                # The next one to open it gets a pipe of his own: in this one he would read on where this reader is.
                os.mkfifo(fresh, 0o600)
                fresh.replace(pipe)
                reader.write(text)
        except BrokenPipeError:  # who opened it has gone
            continue
        except OSError:  # the folder has
            return
