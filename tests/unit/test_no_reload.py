"""After `systemctl enable --no-reload`, systemd from 253 on says of all units that they changed on disk."""

from __future__ import annotations

import pytest

from rackwright.hostside import script_folders

SCRIPTS = {path.name: path.read_text() for folder in script_folders() for path in folder.glob("*.sh")}
RARE = {"commit.sh", "trial_leaving.sh"}
"""They undo what is rare, and a reload may detach the GPUs of the host's other endpoints."""
ENABLING = sorted(name for name, text in SCRIPTS.items() if "enable --quiet --no-reload" in text and name not in RARE)


@pytest.mark.parametrize("name", ENABLING)
def test_a_unit_is_enabled_before_systemd_reads_its_files_again(name: str) -> None:
    assert "daemon-reload" in SCRIPTS[name].rpartition("enable --quiet --no-reload")[2]
