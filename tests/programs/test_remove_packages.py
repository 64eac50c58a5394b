"""A teardown removes what an installation brought: all at once, and nothing that packages of others need."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_script

APT = """#!/bin/bash
printf '%s\\n' "$*" >>{folder}/calls
[[ " $* " == *" --simulate "* ]] || exit 0
for name in "$@"; do
  case $name in a|b|c|d) echo "Remv $name [1]" ;; esac
  [ "$name" != c ] || [ -z "{needs}" ] || echo "Remv {needs} [1]"
done
"""
"""`apt-get` on a host where the package of another user, if there is one, needs c."""


@pytest.mark.parametrize(
    ("needs", "goes", "simulations"),
    [("", "a b c d", 1), ("theirs", "a b d", 5)],
    ids=["all are ours", "one is needed"],
)
def test_packages_that_came_along_go_at_once_unless_others_need_them(
    tmp_path: Path, needs: str, goes: str, simulations: int
) -> None:
    brought = tmp_path / "packages"
    brought.write_text("a\nb\nc\nd\n")
    for name, text in {"apt-get": APT.format(folder=tmp_path, needs=needs), "systemctl": "#!/bin/sh\nexit 1\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = host_script("remove_packages", packages="docker.io", brought=str(brought))
    subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    removals = [call.rpartition("--allow-change-held-packages ")[2] for call in calls if "--simulate" not in call]
    assert removals == ["docker.io", goes]
    assert len(calls) - len(removals) == simulations
    assert not brought.exists()
