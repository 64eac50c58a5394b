"""A site on disk whose hosts are pyinfra's own fake ones, and the real commands started in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
OF_A_RUN = ("RACKWRIGHT_HANDOVER", "RACKWRIGHT_RUNS")
"""Set while a run goes on: a test started from within one must not join it."""
MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"


def make_site(folder: Path, deploy: str, inventory: str, settings: str = "") -> Path:
    """Write a site with these texts, and the model that every host's settings need."""
    for name in ("inventory", "group_vars"):
        (folder / name).mkdir()
    (folder / "deploy.py").write_text(deploy)
    (folder / "inventory" / "fleet.py").write_text(inventory)
    (folder / "group_vars" / "all.yml").write_text(MODEL + settings)
    return folder


def started(site: Path, program: str, *words: str, **variables: str) -> tuple[int, str]:
    """Run one of the installed commands in the site; returns its exit status and all that it printed."""
    known = {key: value for key, value in os.environ.items() if key not in OF_A_RUN}
    done = subprocess.run(
        [str(BIN / program), *words],
        cwd=site,
        env={**known, "PYTHONPATH": str(ROOT), "PYINFRA_PROGRESS": "off", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout
