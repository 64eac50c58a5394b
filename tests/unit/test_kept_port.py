"""The host's own look at a port that dockerd kept from a power cut: the real script among programs that note calls."""

from __future__ import annotations

import fcntl
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.concerns.watch import KEPT_PORT, watch_files
from rackwright.concerns.watch.units import FREED, MENDED
from rackwright.paths import STATE, SWITCH_LOCK
from tests import texts

BIND = (
    "docker: Error response from daemon: driver failed programming external connectivity on endpoint rackwright-llm: "
    "Bind for 0.0.0.0:8000 failed: port is already allocated."
)
WAITS = "docker_start_waits() { printf '%b' \"$WAITS\"; }"
NOTES = '#!/bin/sh\necho "$(basename "$0") $*" >>"$CALLS"\n'
PROGRAMS = {
    "systemctl": """case $1 in
  list-units) printf "%s" "$JOBS" ;;
  is-failed) [ "$3" = "$FAILED" ] ;;
  restart) exit "$RESTARTS" ;;
esac""",
    "journalctl": 'printf "%s\\n" "$JOURNAL"',
    "docker": '[ "$RUNS" != unknown ] || exit 1; printf "%s" "$RUNS"',
    "timeout": 'shift; exec "$@"',
}


@dataclass(frozen=True)
class Boot:
    """A host after its boot: what one look does there."""

    folder: Path

    def look(self, **answers: str) -> tuple[int, str, list[str]]:
        """Exit status, output, and what was done, by what the host's programs say."""
        calls = self.folder / "calls"
        calls.unlink(missing_ok=True)
        defaults = {
            "FAILED": "rackwright-llm.service",
            "JOURNAL": BIND,
            "RUNS": "",
            "RESTARTS": "0",
            "LACKS": "",
            "WAITS": "",
            "JOBS": "",
            **answers,
        }
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        text = watch_files()[KEPT_PORT].replace(f"{STATE}/", f"{self.folder}/").replace(FREED, str(self.freed))
        text = text.replace(MENDED, str(self.mended)).replace(SWITCH_LOCK, str(self.lock))
        text = text.replace("flock --timeout 20", "flock --timeout 1")
        text = text.replace("\nfreed=", f"\ndocker_lacks() {{ printf '%b' \"$LACKS\"; }}\n{WAITS}\nfreed=", 1)
        environment = {"PATH": path, "CALLS": str(calls), **defaults}
        run = subprocess.run(["/bin/sh"], input=text, env=environment, capture_output=True, text=True, check=False)
        assert run.stderr == ""
        changing = ("systemctl restart", "systemctl reset-failed", "systemctl start")
        noted = calls.read_text().splitlines() if calls.exists() else []
        return run.returncode, run.stdout, [row for row in noted if row.startswith(changing)]

    @property
    def freed(self) -> Path:
        return self.folder / "run" / "freed"

    @property
    def lock(self) -> Path:
        return self.folder / "switch.lock"

    @property
    def mended(self) -> Path:
        return self.folder / "run" / "mended"

    def endpoint(self, name: str, current: str = "aaa", proven: str = "aaa") -> None:
        home = self.folder / "endpoints" / name
        home.mkdir(parents=True)
        for link, to in (("current", current), ("proven", proven)):
            if to:
                (home / link).symlink_to(f"releases/{to}")


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"{NOTES}{text}\n")
        program.chmod(0o755)
    return Boot(tmp_path)


def test_dockerd_is_not_restarted_where_it_would_not_come_up(boot: Boot) -> None:
    boot.endpoint("llm")
    status, output, done = boot.look(WAITS="firewalld is silent\\n")
    assert (status, "firewalld is silent" in output, done, boot.freed.exists()) == (2, True, [], False)


NETWORK = "docker: Error response from daemon: endpoint with name rackwright-llm already exists in network bridge."


@pytest.mark.parametrize("journal", [BIND, NETWORK])
def test_dockerd_is_restarted_and_the_endpoint_started_once_a_boot(boot: Boot, journal: str) -> None:
    boot.endpoint("llm")
    status, output, done = boot.look(JOURNAL=journal)
    assert status == 1
    assert output.endswith(f"{texts.WATCH_RESTARTED.format(units=' rackwright-llm.service')}\n")
    assert done == [
        "systemctl restart docker",
        "systemctl reset-failed rackwright-llm.service",
        "systemctl start --no-block rackwright-llm.service",
    ]
    assert boot.look() == (0, "", []), "a second time would be no power cut's"


@pytest.mark.parametrize(
    "answers",
    [
        {"FAILED": ""},
        {"JOURNAL": "torch.OutOfMemoryError: CUDA out of memory"},
        {"RUNS": "0123456789ab\n"},
        {"RUNS": "unknown"},
    ],
    ids=["it has not failed", "it died of something else", "dockerd runs a container", "dockerd does not answer"],
)
def test_nothing_is_done_otherwise(boot: Boot, answers: dict[str, str]) -> None:
    boot.endpoint("llm")
    assert boot.look(**answers) == (0, "", [])
    assert not boot.freed.exists(), "the next look may find it"


def test_a_switch_and_a_restart_of_dockerd_take_turns(boot: Boot) -> None:
    boot.endpoint("llm")
    with boot.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert boot.look() == (0, "", []), "a switch begins"
    assert boot.look(JOBS="rackwright-job-switch-llm.service loaded active\n") == (0, "", []), "one has begun"
    waits = "! flock --shared --nonblock $LOCK true"
    restarts = f'case $1 in restart) {waits} ;; list-units) ;; is-failed) [ "$3" = "$FAILED" ] ;; esac'
    (boot.folder / "bin/systemctl").write_text(f"{NOTES}{restarts}\n")
    assert boot.look(LOCK=str(boot.lock))[0] == 1, "and one that begins now waits"


@pytest.mark.parametrize(("current", "proven"), [("bbb", "aaa"), ("aaa", ""), ("", "")])
def test_what_has_not_proven_itself_is_never_started(boot: Boot, current: str, proven: str) -> None:
    boot.endpoint("llm", current, proven)
    assert boot.look() == (0, "", [])


def test_a_dockerd_that_does_not_come_back_is_said(boot: Boot) -> None:
    boot.endpoint("llm")
    status, output, done = boot.look(RESTARTS="1")
    assert (status, done) == (2, ["systemctl restart docker"])
    assert "could not be restarted" in output


NO_CHAIN = (
    "docker: Error response from daemon: driver failed programming external connectivity on endpoint rackwright-llm: "
    "(iptables failed: iptables --wait -t nat -A DOCKER: iptables: No chain/target/match by that name."
)
FLUSHED = {"JOURNAL": NO_CHAIN, "LACKS": "nat DOCKER\\n"}


def test_chains_that_were_flushed_are_made_again_once_an_hour_and_the_text_says_so(boot: Boot) -> None:
    boot.endpoint("llm")
    status, output, done = boot.look(**FLUSHED)
    assert (status, done[0], len(done)) == (1, "systemctl restart docker", 3)
    assert output.startswith("Docker's chains were gone (nat DOCKER ): it ran nothing and was restarted")
    assert boot.look(**FLUSHED) == (0, "", []), "another tool would be fought"
    os.utime(boot.mended, (0, 0))
    assert boot.look(**FLUSHED)[0] == 1


@pytest.mark.parametrize(
    "answers",
    [
        {"LACKS": ""},
        {"RUNS": "0123456789ab\n"},
        {"FAILED": ""},
        {"JOURNAL": "torch.OutOfMemoryError: CUDA out of memory"},
    ],
    ids=["they are there", "dockerd runs a container", "it has not failed", "it died of something else"],
)
def test_dockerd_is_not_restarted_for_its_chains_otherwise(boot: Boot, answers: dict[str, str]) -> None:
    boot.endpoint("llm")
    assert boot.look(**{**FLUSHED, **answers}) == (0, "", [])
    assert not boot.mended.exists()
