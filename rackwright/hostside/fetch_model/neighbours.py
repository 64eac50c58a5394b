"""Files from other hosts of the run, and onward to others: by the program that hands on, in the folder of a model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.hostside.fetch_model.hub import File

PROGRAM = "hand_on.pyz"
BUSY = 75
"""Exit status (EX_TEMPFAIL): another process fills the folder."""


def run(terms: Mapping[str, Any], folder: Path, files: Sequence[File]) -> str:
    """Fill a folder, and hand on what arrives, until no other host needs it. Return why it failed, or an empty text.

    terms: the program's arguments, apart from files and folder. files: those in it; without any, the other hosts only
    hear that this one needs none.
    """
    if not files:
        terms = {**terms, "listen": None}
    wanted = [{key: file.get(key) for key in ("path", "size", "sha256", "blob")} for file in files]
    spec = json.dumps({**terms, "folder": str(folder), "files": wanted})
    program = Path(terms["secrets"]) / PROGRAM
    status = subprocess.run([sys.executable, str(program), spec], check=False).returncode
    return "" if status in (0, BUSY) else f"its program ended with {status}"
