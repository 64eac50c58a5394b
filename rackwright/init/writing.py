"""Writing a site's files: each is whole at any moment, and a link's target is written, never the link."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rackwright.messages import writing


def write_file(path: Path, content: bytes) -> None:
    """Write a file, its folders included. Raises RackwrightError when it cannot be written."""
    with writing(path):
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f".{target.name}.rackwright-new")
        new.write_bytes(content)
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
