"""A release is all of its files: how its hash is made, what changes it, and what never does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rackwright
from rackwright.concerns.endpoint.binding import Binding, parse_binding
from rackwright.concerns.endpoint.container import EndpointSpec, Mount
from rackwright.concerns.endpoint.release import files as release_module
from rackwright.concerns.endpoint.release.files import SELF, SUMS, Release, hash_of
from rackwright.hostside import host_script
from rackwright.plan.render import render
from tests.unit.test_endpoint_changes import WANTED, release, write

BOUND = Binding(("GPU-1", "GPU-2"))
VLLM = {"engine_kind": "vllm", "image": "vllm/vllm-openai:v0.14.1", "engine": {}}
DRAFTED = {
    "engine.yaml": "max_batch_size: 10\n",
    "unit.service": f"Description=release {SELF}\nExecStart=/bin/run /releases/{SELF}/engine.yaml\n",
}
SERVED = EndpointSpec(
    name="llm",
    image="nvcr.io/nvidia/tensorrt-llm/release@sha256:" + "a" * 64,
    command=("trtllm-serve", "/config/models/m", "--port", "8000"),
    environment={"HF_HUB_OFFLINE": "1"},
    mounts=(Mount("/srv/models/m", "/config/models/m"), Mount("/scratch", "/scratch", writable=True)),
    network="bridge",
    address="0.0.0.0",
    port=8000,
    engine_file="engine.yaml",
    engine_yaml="max_batch_size: 10\n",
    models={"openai/m": "c" * 40},
    served_name="m",
)
AS_DOCUMENTED = r"""
cd "$1"
hash=${1##*/}
for file in $(ls | LC_ALL=C sort | grep -vx SHA256SUMS); do
  echo "$(sed "s/$hash/@rackwright-release@/g" "$file" | sha256sum | cut -d' ' -f1)  $file"
done | sha256sum | cut -c1-12
"""
"""docs/reference/host-files.md tells people to make the hash so."""


def test_the_recipe_of_the_hash_is_this_one() -> None:
    assert hash_of(DRAFTED) == "d6ffa14fe099"


def test_the_serving_part_of_a_spec_has_this_hash() -> None:
    """Another value restarts every endpoint of every fleet at its next deploy."""
    assert SERVED.serving_hash == "93f39ee4c1d6"


def test_the_hash_can_be_made_again_with_the_hosts_own_tools(tmp_path: Path) -> None:
    folder = tmp_path / WANTED.hash
    assert write(WANTED, folder).returncode == 0
    found = subprocess.run(["sh", "-c", AS_DOCUMENTED, "sh", str(folder)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == WANTED.hash
    (folder / "before-start").write_text("exit 0\n")
    found = subprocess.run(["sh", "-c", AS_DOCUMENTED, "sh", str(folder)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() != WANTED.hash


def test_the_release_names_itself_wherever_the_placeholder_stood() -> None:
    assert not [name for name, text in WANTED.files.items() if SELF in text]
    assert WANTED.facts["hash"] == WANTED.hash
    for text in (
        f"(release {WANTED.hash})",
        f"rackwright.release={WANTED.hash}",
        f"releases/{WANTED.hash}/before-start",
    ):
        assert text in WANTED.unit


def edited(name: str) -> Callable[..., str]:
    """Render as usual, but for one template that a user has edited."""

    def rendered(template: str, site: Path, **values: Any) -> str:
        return render(template, site, **values) + ("# edited\n" if template == name else "")

    return rendered


@pytest.mark.parametrize("template", ["endpoint.service.j2", "before-start.j2", "wait-ready.j2"])
def test_an_edited_template_is_another_release_that_serves_the_same(
    template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_module, "render", edited(template))
    other = release()
    assert other.hash != WANTED.hash
    assert other.spec.serving_hash == WANTED.spec.serving_hash


@pytest.mark.parametrize(
    "changed", [{"stop_timeout": 61}, {"load_timeout": 99}, {"start_limit": 9}, {"restart_delay": 9}]
)
def test_a_limit_is_another_release_that_serves_the_same(changed: dict[str, Any]) -> None:
    other = release(**changed)
    assert other.hash != WANTED.hash
    assert other.spec.serving_hash == WANTED.spec.serving_hash


@pytest.mark.parametrize(
    "changed", [{"allow_from": ["10.0.0.0/8"]}, {"allow_from": "private"}, {"drain_timeout": 1}, {"drain_hook": ["lb"]}]
)
def test_what_no_file_of_it_holds_is_the_same_release(changed: dict[str, Any]) -> None:
    assert release(**changed).hash == WANTED.hash


def test_another_file_of_the_same_name_is_another_release() -> None:
    for name in DRAFTED:
        assert hash_of({**DRAFTED, name: "other\n"}) != hash_of(DRAFTED)
    assert hash_of({"engine.yml": DRAFTED["engine.yaml"]}) != hash_of({"engine.yaml": DRAFTED["engine.yaml"]})


def test_an_upgrade_of_rackwright_alone_changes_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    version = re.compile(rf"(?<![\w.]){re.escape(rackwright.__version__)}(?![\w.])")
    assert not [name for name, text in WANTED.files.items() if version.search(text)]
    monkeypatch.setattr(rackwright, "__version__", "99.99.99")
    other = release()
    assert (other.hash, other.spec.serving_hash) == (WANTED.hash, WANTED.spec.serving_hash)


def test_no_file_of_a_release_knows_its_host() -> None:
    assert not [name for name, text in WANTED.files.items() if "GPU-" in text]
    assert "NVIDIA_VISIBLE_DEVICES=${GPUS}" in WANTED.unit


# -- the binding


def test_a_binding_is_what_systemd_reads_and_says_its_own_hash() -> None:
    bound = Binding(("GPU-1", "GPU-2"))
    assert bound.text == f"GPUS=GPU-1,GPU-2\nBINDING={bound.hash}\n"
    assert parse_binding(bound.text) == bound
    assert bound.hash != Binding(("GPU-2", "GPU-1")).hash


@pytest.mark.parametrize(
    "text", ["", "GPUS=GPU-1\n", "GPUS=GPU-1\nBINDING=0123456789ab\n", Binding(("GPU-1",)).text + "X=1\n", "\x00"]
)
def test_a_binding_that_was_changed_by_hand_counts_as_none(text: str) -> None:
    assert parse_binding(text) is None


def start(release: Release, at: Path, binding: str, waiting: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a release's before-start with stand-in tools; waiting: so often are connections still seen at its port."""
    folder, binding_file, tools = at / "release", at / "binding", at / "tools"
    assert write(release, folder).returncode == 0
    if binding:
        binding_file.write_text(f"{binding}BINDING={BOUND.hash}\n")
    script = release.files["before-start"].replace(release.path, str(folder))
    script = script.replace("/var/lib/rackwright/endpoints/llm/binding", str(binding_file))
    script = script.replace("/var/lib/rackwright/endpoints/llm", str(at))
    tools.mkdir()
    stub = f"""echo "$*" >>{at}/asked; [ "$(wc -l <{at}/asked)" -gt {waiting} ] || echo TIME-WAIT 0 0 :8000 :9"""
    for name, does in {"docker": "", "nvidia-smi": "", "sleep": "", "ss": stub}.items():
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "GPUS": "GPU-1,GPU-2", "BINDING": BOUND.hash}
    return subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("text", "starts"), [("GPUS=GPU-1,GPU-2\n", True), ("GPUS=GPU-1,GPU-x\n", False), ("", False)])
def test_no_start_with_a_binding_that_was_changed_by_hand(tmp_path: Path, text: str, starts: bool) -> None:
    done = start(WANTED, tmp_path, text)
    assert (done.returncode == 0) == starts
    assert ("was changed by hand: run " in done.stderr) != starts


TRAPS = {
    "a link to a folder": "ln -s {0}/outside {1}",
    "a link to a file": "ln -s {0}/outside/file {1}",
    "a link to nothing": "ln -s {0}/nowhere {1}",
    "a link to itself": "ln -s tmp {1}",
    "a file": "touch {1}",
    "a pipe": "mkfifo {1}",
    "another user's folder": "mkdir {1}; chown nobody {1}; chmod 0 {1}",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_whatever_the_container_has_left_in_its_caches_is_in_no_starts_way(tmp_path: Path, trap: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("stays")
    [caches] = [row.split("=")[1] for row in WANTED.files["before-start"].splitlines() if row.startswith("caches=")]
    path = tmp_path / "caches" / caches.rpartition("/")[2]
    path.mkdir(parents=True, mode=0o755)
    subprocess.run(["sh", "-c", TRAPS[trap].format(tmp_path, path / "tmp")], check=True)
    done = start(WANTED, tmp_path, "GPUS=GPU-1,GPU-2\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert (path / "tmp").is_dir()
    assert not (path / "tmp").is_symlink()
    assert ((path / "tmp").stat().st_uid, (path / "tmp").stat().st_mode & 0o700) == (0, 0o700)
    assert (tmp_path / "caches").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "outside" / "file").read_text() == "stays"
    assert list((tmp_path / "outside").iterdir()) == [tmp_path / "outside" / "file"]


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("path", ["caches", "caches/d", "caches/d/tmp", "caches/d/triton"])
def test_a_switch_clears_the_caches_for_releases_that_do_not_themselves(tmp_path: Path, trap: str, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("stays")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["sh", "-c", TRAPS[trap].format(tmp_path, tmp_path / path)], check=True)
    script = host_script("tidy_scratch", caches=f"{tmp_path}/caches") + f'mkdir -p "{tmp_path}/caches/d/tmp"'
    subprocess.run(["sh", "-ec", script], check=True)
    assert (tmp_path / "caches").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "outside" / "file").read_text() == "stays"
    assert list((tmp_path / "outside").iterdir()) == [tmp_path / "outside" / "file"]


@pytest.mark.parametrize(("waiting", "looks", "says"), [(0, 1, False), (3, 4, False), (999, 125, True)])
def test_trtllm_serve_starts_on_the_hosts_network_when_nothing_waits_at_its_port(
    tmp_path: Path, waiting: int, looks: int, says: bool
) -> None:
    done = start(release(network="host"), tmp_path, "GPUS=GPU-1,GPU-2\n", waiting)
    calls = (tmp_path / "asked").read_text().splitlines()
    assert (done.returncode, set(calls), len(calls)) == (0, {"-Htn state connected sport = :8000"}, looks)
    assert ("still stand at port 8000" in done.stderr) == says


@pytest.mark.parametrize("changed", [{}, {"network": "host", **VLLM}])
def test_nobody_else_waits_for_a_port(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert start(release(**changed), tmp_path, "GPUS=GPU-1,GPU-2\n", 3).returncode == 0
    assert not (tmp_path / "asked").exists()


def test_files_are_summed_up_without_the_sums_themselves() -> None:
    assert SUMS not in WANTED.files
    assert [row.split("  ")[1] for row in WANTED.sums.splitlines()] == sorted(WANTED.files)
