"""Print the JSON Schema that TensorRT-LLM ships for its file, unparsed. Runs alone inside a serving image.

The only line of standard output is JSON: the engine's version and the file's text; `absent` where the image has none;
or `why` it is not used. The engine is not imported, so it needs no GPU and takes about a second.
"""

from __future__ import annotations

import importlib.util
import json
import re
import stat
from pathlib import Path
from typing import Any

from rackwright.concerns.options.host.in_image import leave, real_output

FILE = "schemas/trtllm-serve-config.schema.json"
LONGEST = 3 << 20
"""Most bytes of the file; that of 1.4.0rc0 has 304,165."""


def _package() -> Path | None:
    found = importlib.util.find_spec("tensorrt_llm")
    folders = found.submodule_search_locations if found else None
    return Path(folders[0]) if folders else None


def _version(package: Path) -> str:
    try:
        text = (package / "version.py").read_text(encoding="utf-8")[:10_000]
    except (OSError, ValueError):
        return ""
    found = re.search(r"__version__\s*=\s*[\"']([^\"']{1,60})[\"']", text)
    return found[1] if found else ""


def answer() -> dict[str, Any]:
    """Return the image's schema, or why it is not used."""
    package = _package()
    if package is None or not (package / FILE).exists():
        return {"absent": True}
    try:
        about = (package / FILE).stat()
        if not stat.S_ISREG(about.st_mode):
            return {"why": "it is not a file"}
        if about.st_size > LONGEST:
            return {"why": f"it has {about.st_size} bytes, more than {LONGEST}"}
        return {"version": _version(package), "schema": (package / FILE).read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        return {"why": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    leave(real_output(), json.dumps(answer()))
