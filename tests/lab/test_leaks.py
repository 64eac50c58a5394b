"""No secret in clear: not printed, not in any process, not at rest outside the one file that may hold the login."""

from __future__ import annotations

import base64
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine import cgroups
from rackwright_lab.machine.shell import LabError
from tests.lab.conftest import BIN, PATIENCE, ROOT, Run, Site
from tests.lab.test_staging import IMAGE, SMALL, Staging

pytestmark = pytest.mark.lab

LOUD = ("-vvv", "--debug", "--diff")
LOGIN = "/root/.docker/config.json"
PASSING = "/run/rackwright/secrets/"
STRACE = ("strace", "-f", "-qq", "-v", "-s", "200000", "-e", "trace=execve", "-e", "signal=none", "--seccomp-bpf")


def forms(secret: str) -> list[str]:
    """Return the secret's core as text and in base64, wherever in a longer text it began."""
    core = secret[4:44].encode()
    found = [core.decode()]
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + core).decode().rstrip("=")
        found.append(text[shift + 1 : -1] if shift else text[:-1])
    return found


@pytest.fixture(scope="module")
def needles(worker_lab: Lab) -> list[str]:
    """Return what must be found nowhere."""
    secrets = worker_lab.secrets()
    return [form for name in ("registry-key", "hub-token") for form in forms(secrets[name])]


@pytest.fixture
def lived(worker_lab: Lab) -> Host:
    """Return the lived-in host."""
    return worker_lab.host("lived2")


def in_text(text: str, needles: Sequence[str]) -> list[str]:
    """Lines that hold a secret."""
    return [row[:300] for row in text.splitlines() if any(needle in row for needle in needles)]


@contextmanager
def watched(host: Host, trace: Path) -> Iterator[None]:
    """Write down arguments and environment of every program that is started on a host."""
    pids = cgroups.members(host.machine.group / "machine")
    words = [sys.executable, "-m", "tests.lab.exec_watch", str(trace), *map(str, pids)]
    watch = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline() == "attached\n"
        yield
        host.run("systemd-run --quiet --wait --setenv=SEEN=in-an-environment echo seen-in-an-argument")
        assert watch.poll() is None
    finally:
        watch.terminate()
        watch.wait(60)
    trace_text = trace.read_text(errors="replace")
    assert "echo seen-in-an-argument" in trace_text, "the watch saw what the host started"
    assert "SEEN=in-an-environment" in trace_text


def files_with(host: Host, needles: Sequence[str], *folders: str) -> dict[str, str]:
    """Files of a host that hold a secret, with their mode and owner."""
    script = (
        f"grep -rlaF -f - -D skip {' '.join(folders)} 2>/dev/null | xargs -r -d '\\n' stat -c '%n %a:%U' 2>/dev/null"
    )
    rows = host.run(script, stdin="\n".join(needles), check=False, timeout=300).stdout.splitlines()
    return dict(row.rsplit(" ", 1) for row in rows)


class Sweeper(threading.Thread):
    """Looks again and again, as long as a deploy runs, which files hold a secret for a moment."""

    def __init__(self, host: Host, needles: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.host, self.needles = host, needles
        self.found: dict[str, str] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.2):
            try:
                self.found |= files_with(
                    self.host, self.needles, "/tmp", "/var/tmp", "/run/rackwright", "/root", "/etc"
                )
            except LabError:
                continue


def control(site: Site, trace: Path, temporary: Path, *words: str | Path) -> Run:
    """Run a command on the control machine, with every program that it starts written down, and a TMPDIR of its own."""
    return site.command("env", f"TMPDIR={temporary}", *STRACE, "-o", trace, *words, timeout=2 * PATIENCE)


def assert_nothing_at_rest(host: Host, needles: Sequence[str], allowed: dict[str, str]) -> None:
    folders = host.run("ls -d /* | grep -vxE '/(proc|sys|dev)'").stdout.split()
    assert files_with(host, needles, *folders) == allowed
    assert in_text(host.run("journalctl --no-pager -o export | cat -v", timeout=300).stdout, needles) == []
    inspected = host.run("docker inspect $(docker ps -aq; docker image ls -q)", check=False).stdout
    assert inspected
    assert in_text(inspected, needles) == []


def test_a_whole_deploy_says_and_shows_no_secret(site: Site, lived: Host, needles: list[str], tmp_path: Path) -> None:
    lived.reset()
    temporary, program_log = tmp_path / "tmp", tmp_path / "host.programs"
    temporary.mkdir()
    pyinfra = (BIN / "pyinfra", "inventory/lab.py", "deploy.py", "--limit", lived.name)
    sweeper = Sweeper(lived, needles)
    with watched(lived, program_log):
        sweeper.start()
        site.lab.registry.accept_key("rotated")
        try:
            refused = control(site, tmp_path / "refused.strace", temporary, *pyinfra, "-y", *LOUD)
        finally:
            site.lab.registry.heal()
        deployed = control(site, tmp_path / "deployed.strace", temporary, *pyinfra, "-y", *LOUD)
        sweeper.over.set()
        sweeper.join()
    assert refused.status == 1
    assert "refuses the key" in refused.output
    assert deployed.status == 0, deployed.output[-5000:]

    lived.run("echo '# drift' >>/etc/systemd/system/rackwright-llm.service; rm /root/.docker/config.json")
    for number, words in enumerate(
        (
            (*pyinfra, "--dry", *LOUD),
            (*pyinfra, "--dry", "--debug-all", "--debug-operations"),
            (BIN / "pyinfra", "inventory/lab.py", "debug-inventory"),
            (BIN / "rackwright", "check", "inventory/lab.py", "--show-origin"),
            (BIN / "rackwright", "render", "inventory/lab.py", "--limit", lived.name, "--out", tmp_path / "rendered"),
        )
    ):
        printed = control(site, tmp_path / f"{number}.strace", temporary, *words)
        assert printed.status == 0, printed.output[-3000:]

    for run in site.runs:
        assert in_text(run.output, needles) == []
    for trace in (program_log, *tmp_path.glob("*.strace")):
        assert trace.stat().st_size > 0
        assert in_text(trace.read_text(errors="replace"), needles) == [], trace.name
    assert sweeper.found, "the sweeps saw at least the login where it may lie"
    open_for_others = {name: mode for name, mode in sweeper.found.items() if mode != "600:root"}
    assert open_for_others == {}
    assert {name for name in sweeper.found if not name.startswith((LOGIN, "/root/.docker/", PASSING))} == set()
    runs = site.lab.paths.root / "runs"
    assert list(runs.glob("*.jsonl")), "each deploy left a record"
    assert_nothing_on_control(needles, temporary, tmp_path / "rendered", ROOT, runs)


def assert_nothing_on_control(needles: Sequence[str], *folders: Path) -> None:
    words = ["grep", "-rlaF", "-f", "-", "--exclude-dir=.git", "--exclude-dir=.venv", *map(str, folders)]
    found = subprocess.run(words, input="\n".join(needles), capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_the_kept_login_lies_in_one_file_for_root_only(site: Site, lived: Host, needles: list[str]) -> None:
    run = site.deploy("-y", limit=[lived.name])
    assert run.status == 0, run.output
    assert_nothing_at_rest(lived, needles, {LOGIN: "600:root"})


def test_a_login_that_is_not_kept_is_at_rest_nowhere(
    site: Site, lived: Host, needles: list[str], tmp_path: Path
) -> None:
    key = site.lab.secrets()["registry-key"]
    staging = Staging(site, lived, {"image": IMAGE, "model": SMALL, "registry": {"keep": False}, "registry_key": key})
    lived.run("systemctl stop rackwright-llm")
    staging.forget_image()
    staging.forget_models()
    with watched(lived, tmp_path / "programs"):
        run = staging.run("-vvv", "--debug")
    assert run.status == 0, run.output[-5000:]
    assert in_text(run.output, needles) == []
    assert in_text((tmp_path / "programs").read_text(errors="replace"), needles) == []
    assert_nothing_at_rest(lived, needles, {})
