"""A site on disk whose hosts are pyinfra's own fake ones, and the real commands started in it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.warm import BIN, ROOT, run

PATIENCE = 300.0
"""Seconds for a command that connects to nothing."""
OF_A_RUN = ("RACKWRIGHT_HANDOVER", "RACKWRIGHT_RUNS")
"""Set while a run is under way: a test started from within one must not join it."""
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
    environment = {key: value for key, value in os.environ.items() if key not in OF_A_RUN}
    env = {**environment, "PYTHONPATH": str(ROOT), "PYINFRA_PROGRESS": "off", **variables}
    return run([str(BIN / program), *words], site, env, PATIENCE)
