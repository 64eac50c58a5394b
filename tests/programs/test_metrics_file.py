"""The host's metrics as a file: from what the looks, the acts and the marks left, by the check that hosts have."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from rackwright.concerns.watch.metrics import CHECK, DEFAULT_FOLDER, WRITTEN_FILE, metrics_files
from rackwright.hostside import host_script
from tests.unit.machines import settings

PATHS = ("/var/lib/rackwright", "/run/rackwright", "/etc/rackwright", "/run/systemd/units", DEFAULT_FOLDER)
NAME = "rackwright.prom"


class Host:
    """A folder that stands for a host's file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
        (root / DEFAULT_FOLDER.lstrip("/")).mkdir(parents=True)

    def write(self, path: str, *rows: str) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{row}\n" for row in rows))
        return file

    def check(self, folder: str | None = None, path: str = "") -> subprocess.CompletedProcess[str]:
        """Run the check as it is written for a host, with this folder before each path."""
        text = metrics_files(settings(watch={"textfile": folder}))[CHECK]
        for path in sorted({*PATHS, *([folder] if folder else [])}, key=len, reverse=True):
            text = re.sub(rf"(?<![\w/.-]){re.escape(path)}", f"{self.root}{path}", text)
        env = {**os.environ, "PATH": f"{path}{os.environ['PATH']}"}
        return subprocess.run(["/bin/sh"], input=text, env=env, capture_output=True, text=True, check=False)

    def file(self, folder: str = DEFAULT_FOLDER) -> Path:
        return self.root / folder.lstrip("/") / NAME

    def samples(self) -> dict[str, float]:
        run = self.check()
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        rows = [row for row in self.file().read_text().splitlines() if not row.startswith("#")]
        return {name: float(value) for name, value in (row.rsplit(" ", 1) for row in rows)}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def with_endpoint(host: Host, state: str = "serving", image: str = "vllm/vllm-openai@sha256:12") -> None:
    """Give the host a proven endpoint that the watch has looked at 7 seconds ago."""
    home = host.root / "var/lib/rackwright/endpoints/llm"
    spec = {
        "format": 2,
        "hash": "4f623e1fc257",
        "image": image,
        "served_name": "gpt-oss-120b",
        "files": {"a": ' "hash": 1'},
    }
    host.write("/var/lib/rackwright/endpoints/llm/releases/4f623e1fc257/spec.json", json.dumps(spec, indent=1))
    for name in ("current", "proven"):
        (home / name).symlink_to("releases/4f623e1fc257")
    host.write("/etc/rackwright/watched/llm", "engine=vllm", "model=gpt-oss-120b")
    host.write("/run/rackwright/watch/llm", f"looked={host.uptime - 7}", f"state={state}", f"since={host.uptime - 60}")


def test_a_host_without_anything_says_when_it_looked(host: Host) -> None:
    found = host.samples()
    assert found.keys() == {
        "rackwright_last_look_time_seconds",
        'rackwright_watch_paused{what="firewall"}',
        'rackwright_watch_paused{what="engines"}',
        "rackwright_lease_held",
        "rackwright_drained",
        "rackwright_repairs",
    }


def test_an_endpoint_has_its_release_its_state_and_its_proof(host: Host) -> None:
    with_endpoint(host, "hung")
    found = host.samples()
    of = 'endpoint="llm"'
    labels = f'{of},release="4f623e1fc257",model="gpt-oss-120b",engine="vllm",image="vllm/vllm-openai@sha256:12"'
    assert found[f"rackwright_release_info{{{labels}}}"] == 1
    assert found[f"rackwright_release_proven{{{of}}}"] == 1
    assert [found[f'rackwright_endpoint_state{{{of},state="{state}"}}'] for state in ("hung", "serving")] == [1, 0]
    now = found["rackwright_last_look_time_seconds"]
    assert now - found[f"rackwright_endpoint_looked_time_seconds{{{of}}}"] == pytest.approx(7, abs=3)
    assert now - found[f"rackwright_endpoint_state_time_seconds{{{of}}}"] == pytest.approx(60, abs=3)
    assert now - found[f"rackwright_last_proof_time_seconds{{{of}}}"] == pytest.approx(0, abs=5)
    assert found[f'rackwright_acts_total{{{of},act="restart"}}'] == 0


def test_a_release_that_is_on_trial_is_not_proven(host: Host) -> None:
    with_endpoint(host)
    (host.root / "var/lib/rackwright/endpoints/llm/proven").unlink()
    assert host.samples()['rackwright_release_proven{endpoint="llm"}'] == 0


def test_a_state_that_a_later_version_knows_is_shown_too(host: Host) -> None:
    with_endpoint(host, "asleep")
    assert host.samples()['rackwright_endpoint_state{endpoint="llm",state="asleep"}'] == 1


def test_acts_are_counted_and_the_last_one_named(host: Host) -> None:
    with_endpoint(host)
    rows = ("100 restart proven x", "200 clear proven y", "300 restart failed z", "400 sick reported three restarts")
    host.write("/var/lib/rackwright/watch/acts-llm", *rows)
    found = host.samples()
    of = 'endpoint="llm"'
    assert [found[f'rackwright_acts_total{{{of},act="{act}"}}'] for act in ("restart", "sick", "tell")] == [2, 1, 0]
    assert found[f'rackwright_last_act_time_seconds{{{of},act="sick",result="reported"}}'] == 400


def test_marks_lease_drain_repair_and_pause(host: Host) -> None:
    host.write("/var/lib/rackwright/marks/sick-a-b", "word=down", "who=watch", 'reason=it said "no"')
    host.write("/var/lib/rackwright/marks/quarantine", "word=up")
    host.write("/var/lib/rackwright/drained", "2026-11-26 10:00:00 x")
    host.write("/run/rackwright/lease", "id=4.x", f"taken={host.uptime - 30}", f"expires={host.uptime + 60}")
    host.write("/var/lib/rackwright/watch/firewall", "1000 the table was gone", "2000 again")
    host.write("/run/rackwright/engines-paused", f"{host.uptime + 600}", "who=x")
    found = host.samples()
    assert found['rackwright_mark{endpoint="a-b",kind="sick",word="down"}'] == 1
    assert found['rackwright_mark{endpoint="",kind="quarantine",word="up"}'] == 1
    assert found['rackwright_mark_time_seconds{endpoint="a-b",kind="sick"}'] > 0
    assert found["rackwright_drained"] == 1
    assert found["rackwright_lease_held"] == 1
    assert found["rackwright_lease_age_seconds"] == pytest.approx(30, abs=3)
    assert (found["rackwright_repairs"], found["rackwright_last_repair_time_seconds"]) == (2, 2000)
    assert found['rackwright_watch_paused{what="engines"}'] == 1
    assert "reason" not in host.file().read_text()


def test_faults_of_gpus(host: Host) -> None:
    with_endpoint(host)
    host.write("/run/rackwright/gpus", "looked=1", "state=fault", "since=1", "faults=2", "signs=x; y")
    host.write("/run/rackwright/watch-gpus/faults", "kernel-79-0000:1b:00 NVRM: x", "driver nvidia-smi hangs")
    found = host.samples()
    assert found["rackwright_gpu_faults"] == 2
    assert found['rackwright_gpu_fault{kind="kernel",of="79-0000:1b:00"}'] == 1
    assert found['rackwright_gpu_fault{kind="driver",of=""}'] == 1
    assert not [name for name in found if 'endpoint="gpus"' in name]


def test_what_a_look_keeps_beside_its_state_is_no_endpoint(host: Host) -> None:
    with_endpoint(host)
    host.write("/run/rackwright/watch/llm.connections", "")
    host.write("/run/rackwright/watch/llm.new", "state=hung")
    assert not [name for name in host.samples() if 'endpoint="llm.' in name]


def test_a_lease_that_has_ended_is_not_held(host: Host) -> None:
    host.write("/run/rackwright/lease", "id=4.x", f"taken={host.uptime - 300}", f"expires={host.uptime - 60}")
    found = host.samples()
    assert found["rackwright_lease_held"] == 0
    assert "rackwright_lease_age_seconds" not in found


HOSTILE = 'x"} 1\n# TYPE evil gauge\nevil{a="\\\x00\xff'


def test_what_a_file_says_ends_no_label(host: Host) -> None:
    with_endpoint(host, 'x"} 1\\')
    host.write("/var/lib/rackwright/watch/acts-llm", "garbage", "", 'x "} y')
    (host.root / "run/rackwright/watch/other").write_bytes(HOSTILE.encode("latin-1"))
    (host.root / "var/lib/rackwright/marks").mkdir()
    (host.root / "var/lib/rackwright/marks/trial-llm").touch()
    host.samples()
    row = re.compile(r'\w+(\{\w+="[^"\\]*"(,\w+="[^"\\]*")*\})? -?[0-9.e+]+')
    rows = [sample for sample in host.file().read_text().splitlines() if not sample.startswith("#")]
    assert [sample for sample in rows if not row.fullmatch(sample)] == []
    assert 'rackwright_mark{endpoint="llm",kind="trial",word=""} 1' in rows


def test_no_folder_is_made(host: Host) -> None:
    host.file().parent.rmdir()
    assert host.check().returncode == 0
    assert not host.file().parent.exists()
    run = host.check("/srv/textfiles")
    assert (run.returncode, "/srv/textfiles" in run.stdout) == (1, True)
    assert not (host.root / "srv").exists()


def test_a_file_is_never_half_written_and_follows_no_link(host: Host) -> None:
    elsewhere = host.write("/etc/passwd", "root")
    host.file().symlink_to(elsewhere)
    earlier = host.file().with_name(f".{NAME}.abcdef")
    earlier.symlink_to(elsewhere)
    host.samples()
    assert elsewhere.read_text() == "root\n"
    assert [path.name for path in host.file().parent.iterdir()] == [NAME]
    assert oct(host.file().stat().st_mode)[-3:] == "644"


def test_the_folder_s_owner_cannot_lead_it_to_another_file(host: Host) -> None:
    victim = host.write("/etc/shadow", "secret")
    victim.chmod(0o600)
    folder = host.file().parent
    for name in ("stat", "awk", "mktemp", "date"):
        real = shutil.which(name)
        swap = f'for each in {folder}/.rackwright.prom.*; do [ ! -e "$each" ] || ln -sfn {victim} "$each"; done'
        host.write(f"/bin/{name}", "#!/bin/sh", swap, f'{real} "$@"', "ended=$?", swap, "exit $ended").chmod(0o755)
    host.check(path=f"{host.root}/bin:")
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("secret\n", 0o600)


def test_another_folder_leaves_no_file_behind(host: Host) -> None:
    host.samples()
    (host.root / "srv/textfiles").mkdir(parents=True)
    assert host.check("/srv/textfiles").returncode == 0
    assert host.file("/srv/textfiles").exists()
    assert not host.file().exists()


def test_a_teardown_removes_it_and_nothing_else(host: Host) -> None:
    host.samples()
    other = host.write(f"{DEFAULT_FOLDER}/other.prom", "a 1")
    written = host.root / WRITTEN_FILE.lstrip("/")
    subprocess.run(["/bin/sh"], input=host_script("metrics_remove", place=str(written)), text=True, check=True)
    assert list(host.file().parent.iterdir()) == [other]
    written.write_text(f"{other}\n")
    subprocess.run(["/bin/sh"], input=host_script("metrics_remove", place=str(written)), text=True, check=True)
    assert other.exists()


def test_a_look_costs_next_to_nothing(host: Host) -> None:
    with_endpoint(host)
    assert min(spent(host) for _ in range(10)) < 0.02


def spent(host: Host) -> float:
    """Return the seconds of CPU of one check."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    host.check()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
