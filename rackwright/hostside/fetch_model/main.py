"""Entry: the JSON of models.py as the first argument, the token in a file; exit 0 means complete and verified."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from rackwright.hostside.fetch_model.failures import MISTAKE, MISTAKES, DownloadError, classify, explain
from rackwright.hostside.fetch_model.run import Model
from rackwright.hostside.quiet_disk import quiet_disk

TOKEN_FILE = "hub_token"


def main() -> int:
    """Fetch the model of argv[1]. Return the exit status."""
    # As process 1 of a container, Python would ignore SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    quiet_disk()
    spec = json.loads(sys.argv[1])
    # The image may be set to be offline, and so may its library's transfer helpers, which resume nothing.
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_ENABLE_HF_TRANSFER"):
        os.environ.pop(name, None)
    quiet = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    os.environ.update(quiet, HF_HUB_ETAG_TIMEOUT="30")
    os.umask(0o022)
    model = Model(spec, _token(Path(spec["secrets"]) / TOKEN_FILE))
    try:
        model.run()
    except (DownloadError, OSError) as error:
        failure = classify(error)
        texts = explain(failure, model.repository, model.revision, bool(model.token), str(model.target))
        print("\n".join(f"error: {text}" if number == 0 else text for number, text in enumerate(texts)), flush=True)
        return MISTAKE if failure.kind in MISTAKES else 1
    return 0


def _token(file: Path) -> str | None:
    return file.read_text().strip() or None if file.exists() else None
