"""The restart of a hung endpoint: the real script, peers that answer over sockets, and programs that note calls."""

from __future__ import annotations

import fcntl
import re
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from rackwright.concerns.watch.act import act_script
from rackwright.plan.render import render_own
from tests.lab.products import in_proof, with_proof

PATHS = {"/var/lib/rackwright": "state", "/run/rackwright": "run", "/etc/rackwright": "etc"}
PROGRAMS = {
    "systemctl": """\
case $1 in
  show) cat "$UNIT_STATE" ;;
  list-units) cat "$UNITS_UP" 2>/dev/null ;;
  start) [ ! -f "$STARTS" ] || cp "$STARTS" "$UNIT_STATE" ;;
  is-system-running) echo running ;;
esac
exit 0""",
    "journalctl": "echo its journal",
    "docker": "exit 1",
    "nvidia-smi": "echo its GPUs",
    "sleep": "/bin/sleep 0.02",
    "date": 'case "$*" in +%s) echo "$NOW" ;; *) /bin/date "$@" ;; esac',
}
QUIET = ("date", "journalctl", "nvidia-smi", "docker")
NOW = 240 * 7_000_000
"""The beginning of a minute of the first host, in any group."""
RUNNING = "ActiveState=active\nSubState=running\n"
DIED = "ActiveState=activating\nSubState=auto-restart\n"


class Word(socketserver.ThreadingTCPServer):
    """A peer's word at a port of its own: it answers with the next of its words, or what `now` says."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *words: str, now: Callable[[], str] | None = None) -> None:
        self.words, self.asked, self.now = list(words), list[str](), now
        super().__init__(("127.0.0.1", 0), Answering)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def reply(self) -> str:
        if self.now:
            return self.now()
        return self.words.pop(0) if len(self.words) > 1 else self.words[0]


class Answering(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        peer = self.server
        assert isinstance(peer, Word)
        peer.asked.append(self.rfile.readline().decode().strip())
        self.wfile.write(f"{peer.reply()}\n".encode())


@dataclass
class Act:
    """One run of the script, and what it left."""

    status: int
    output: str
    calls: list[str]

    @property
    def changed(self) -> list[str]:
        """The stops and starts."""
        return [
            " ".join(row.split()[1:]) for row in self.calls if row.startswith(("systemctl start", "systemctl stop"))
        ]


STOP, START = "stop rackwright-llm.service", "start --no-block rackwright-llm.service"


@dataclass
class Stage:
    """A folder that stands for a host whose endpoint hangs."""

    folder: Path
    peers: list[Word] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("state/endpoints/llm/releases/new", "state/endpoints/llm/proofs", "state/watch", "run/watch",
                     "etc/watched", "etc/act", "bin", "run-word"):  # fmt: skip
            (self.folder / name).mkdir(parents=True)
        for name, text in PROGRAMS.items():
            self.program(name, text)
        home = self.home
        (home / "current").symlink_to("releases/new")
        (home / "proven").symlink_to("releases/new")
        (home / "binding").write_text("GPUS=GPU-1\n")
        (home / "proven-binding").write_text("GPUS=GPU-1\n")
        self.questions("exit 0")
        self.look("hung")
        self.unit(RUNNING)
        self.after_start(RUNNING)

    def program(self, name: str, text: str) -> None:
        program = self.folder / "bin" / name
        note = "" if name in QUIET else 'echo "$(basename "$0") $*" >>"$CALLS"\n'
        program.write_text(f"#!/bin/sh\n{note}{text}\n")
        program.chmod(0o755)

    @property
    def home(self) -> Path:
        return self.folder / "state/endpoints/llm"

    @property
    def marks(self) -> set[str]:
        folder = self.folder / "state/marks"
        return {path.name for path in folder.iterdir()} if folder.exists() else set()

    @property
    def rows(self) -> list[list[str]]:
        file = self.folder / "state/watch/acts-llm"
        return [row.split(" ", 3) for row in file.read_text().splitlines()] if file.exists() else []

    @property
    def results(self) -> list[str]:
        return [" ".join(row[1:3]) for row in self.rows]

    @property
    def events(self) -> list[str]:
        """Kind and state of each event."""
        found = sorted((self.folder / "state/events").glob("[0-9]*"), key=lambda path: path.stat().st_mtime_ns)
        texts = [dict(row.split("=", 1) for row in path.read_text().splitlines()) for path in found]
        return [f"{text['kind']} {text['state']}" for text in texts]

    @property
    def texts(self) -> list[str]:
        """Text of each event."""
        found = sorted((self.folder / "state/events").glob("[0-9]*"), key=lambda path: path.stat().st_mtime_ns)
        return [row[5:] for path in found for row in path.read_text().splitlines() if row.startswith("text=")]

    def look(self, state: str, ago: int = 1, before: int = 30) -> None:
        """Find it so, `ago` seconds ago, and for the first time `before` that."""
        uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
        times = f"looked={uptime - ago}\nsince={uptime - ago - before}\n"
        text = f"{times}state={state}\nsigns=steps stand still for 130 s, and a probe is not answered\n"
        (self.folder / "run/watch/llm").write_text(text)

    def unit(self, text: str) -> None:
        (self.folder / "unit").write_text(text)

    def after_start(self, text: str) -> None:
        (self.folder / "starts").write_text(text)

    def questions(self, script: str) -> None:
        (self.home / "proofs/new").write_text(f"# seconds=20\n{script}\n")

    def acted(self, *ago: int, kind: str = "restart failed") -> None:
        now = NOW
        (self.folder / "state/watch/acts-llm").write_text(
            "".join(f"{now - one} {kind} x\n" for one in sorted(ago)[::-1])
        )

    def run(self, *words: str, now: int = NOW) -> Act:
        values = {
            "act": "restart", "hosts": len(self.peers) + 1, "index": 0, "max_unavailable": 1, "load": 2, "after": 120,
            "peers": " ".join(f"h{number}={peer.address}" for number, peer in enumerate(self.peers)), **self.settings,
        }  # fmt: skip
        (self.folder / "etc/watched/llm").write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        (self.folder / "etc/act-llm").write_text("stop=1\ndrain=10\n")
        script = self.folder / "watch-act"
        text = re.sub(
            r"^PATH=.*$", f"PATH={self.folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", act_script(), flags=re.M
        )
        for path, name in PATHS.items():
            text = text.replace(path, str(self.folder / name))
        script.write_text(text)
        calls = self.folder / "calls"
        calls.unlink(missing_ok=True)
        environment = {
            "CALLS": str(calls), "UNIT_STATE": str(self.folder / "unit"), "STARTS": str(self.folder / "starts"),
            "UNITS_UP": str(self.folder / "units"), "NOW": str(now),
        }  # fmt: skip
        run = subprocess.run(
            ["sh", str(script), "llm", *words], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert run.stderr == ""
        return Act(run.returncode, run.stdout, calls.read_text().splitlines() if calls.exists() else [])


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    for peer in stage.peers:
        peer.shutdown()
        peer.server_close()


def test_alone_a_hung_endpoint_is_restarted_once_and_proven(stage: Stage) -> None:
    act = stage.run()
    assert (act.status, act.changed) == (0, [STOP, START]), act.output
    assert stage.results == ["restart proven"]
    assert stage.marks == set()
    assert stage.events == ["restart firing", "restart resolved"]
    dumps = {path.suffix for path in (stage.home / "failed").iterdir()}
    assert dumps == {".log", ".look", ".stacks", ".nvidia-smi", ".kernel"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in (stage.home / "failed").iterdir())
    stage.look("serving")
    assert stage.run().changed == []


CONNECTIONS = r"""0 0 172.17.0.2:8000 10.0.0.7:5000 bytes_sent:900 bytes_received:300 lastsnd:130000 lastrcv:160000
0 0 172.17.0.2:8000 10.0.0.7:5001 bytes_received:300 lastrcv:140000
0 0 172.17.0.2:8000 10.0.0.8:5002 lastrcv:90000"""


@pytest.mark.parametrize(
    ("inspect", "cut"),
    [
        ("echo 4242", "2 requests cut"),
        ("echo 'Error: No such object: rackwright-llm'; exit 1", "0 requests cut"),
        ("exit 1", "an unknown number of requests cut"),
    ],
)
def test_what_a_restart_cuts_is_counted(stage: Stage, inspect: str, cut: str) -> None:
    (stage.home / "current/health-url").write_text("http://127.0.0.1:8000/health\n")
    stage.program("docker", inspect)
    stage.program("nsenter", f"cat <<'END'\n{CONNECTIONS}\nEND")
    assert stage.run().status == 0
    assert stage.results == ["restart proven"]
    assert stage.rows[-1][3].partition(";")[0] == cut


def test_while_it_restarts_it_is_marked_and_holds_the_lease(stage: Stage) -> None:
    stage.questions(f"cat {stage.folder}/state/marks/watch-llm {stage.folder}/run/lease >{stage.folder}/during")
    assert stage.run().status == 0
    during = (stage.folder / "during").read_text()
    assert "word=down\n" in during
    assert "user=watch\n" in during
    assert not (stage.folder / "run/lease").exists()


def test_a_lease_of_a_run_that_fetches_neither_stops_it_nor_goes(stage: Stage) -> None:
    lease = stage.folder / "run/lease"
    text = "id=7.abc\nuser=ann\npurpose=rackwright rollout site.py\ntaken=1\nexpires=999999999\n"
    lease.write_text(text)
    (stage.folder / "units").write_text("rackwright-job-model-qwen.service loaded active running x\n")
    assert stage.run().status == 0
    assert lease.read_text() == text


@pytest.mark.parametrize("unit", ["rackwright-job-switch-llm", "rackwright-job-rest-llm", "rackwright-guard-firewall"])
def test_a_host_in_a_switch_a_drain_or_a_guard_is_left_alone(stage: Stage, unit: str) -> None:
    (stage.folder / "units").write_text(f"{unit}.service loaded active running x\n")
    assert (stage.run().changed, stage.marks) == ([], set())


@pytest.mark.parametrize("path", ["state/drained", "state/endpoints/other/trial", "state/dockerd/trial"])
def test_a_drained_host_and_a_trial_are_left_alone(stage: Stage, path: str) -> None:
    (stage.folder / path).parent.mkdir(parents=True, exist_ok=True)
    (stage.folder / path).write_text("")
    assert (stage.run().changed, stage.marks) == ([], set())


@pytest.mark.parametrize("verb", ["drain", "teardown", "reboot"])
def test_a_run_that_takes_the_host_out_is_not_crossed(stage: Stage, verb: str) -> None:
    (stage.folder / "run/lease").write_text(f"id=7.a\npurpose=rackwright {verb} site.py\ntaken=1\nexpires=999999999\n")
    assert stage.run().changed == []


def test_a_pause_holds_it_back(stage: Stage) -> None:
    (stage.folder / "run/engines-paused").write_text("999999999\nwho=ann\n")
    assert stage.run().changed == []
    (stage.folder / "run/engines-paused").write_text("1\nwho=ann\n")
    assert stage.run().changed == [STOP, START]


def test_one_that_runs_what_is_not_proven_is_left_alone(stage: Stage) -> None:
    (stage.home / "proven").unlink()
    (stage.home / "proven").symlink_to("releases/old")
    assert stage.run().changed == []


def test_a_switch_that_holds_the_lock_is_not_crossed(stage: Stage) -> None:
    with (stage.folder / "run/switch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert stage.run().changed == []
    assert stage.run().changed == [STOP, START]


@pytest.mark.parametrize(
    ("state", "ago"), [("serving", 1), ("busy", 1), ("stalled", 1), ("unmeasured", 1), ("hung", 600)]
)
def test_only_a_fresh_finding_is_acted_upon(stage: Stage, state: str, ago: int) -> None:
    stage.look(state, ago)
    assert (stage.run().changed, stage.rows) == ([], [])


def test_peers_that_serve_let_it_restart(stage: Stage) -> None:
    stage.peers = [Word("ready up"), Word("ready up")]
    act = stage.run(now=0)
    assert act.changed == [STOP, START], act.output
    assert stage.peers[0].asked == ["llm", "llm"]


@pytest.mark.parametrize(
    "reply",
    with_proof(
        ["drain", "down #trial", "down #watch", "down #stopped", ""], ["drain", ""], "one of those words stands for all"
    ),
)
def test_below_its_limit_a_group_only_reports(stage: Stage, reply: str) -> None:
    stage.peers = [Word("ready up"), Word(reply)]
    assert stage.run(now=0).changed == []
    assert stage.results == ["tell -"]
    assert stage.events == ["would-restart firing"]
    stage.run(now=10)
    assert stage.results == ["tell -"]
    stage.settings["max_unavailable"] = 2
    assert stage.run(now=20).changed == [STOP, START]


def test_a_full_disk_leaves_it_as_it_is_and_is_reported_once(stage: Stage) -> None:
    (stage.folder / "state/marks").write_text("no folder")
    (stage.folder / "state/watch/acts-llm.new").mkdir()
    for now in (NOW, NOW + 40):
        assert stage.run(now=now).changed == []
    assert stage.events == ["would-restart firing"]
    (stage.folder / "state/marks").unlink()
    (stage.folder / "state/watch/acts-llm.new").rmdir()
    assert stage.run(now=NOW + 80).changed == [STOP, START]
    assert stage.events[1:] == ["restart firing", "restart resolved", "would-restart resolved"]


def test_what_docker_could_not_start_is_left_to_the_repair_of_dockerd_at_first(stage: Stage) -> None:
    journal = stage.folder / "bin/journalctl"
    journal.write_text("#!/bin/sh\necho 'docker: Error response from daemon: driver failed programming'\n")
    stage.look("dead", before=0)
    assert (stage.run().changed, stage.rows, stage.marks) == ([], [], set())
    stage.look("dead")
    assert stage.run().changed == [STOP, START]
    journal.write_text("#!/bin/sh\necho 'CUDA out of memory'\n")
    stage.look("dead", before=0)
    assert stage.run().changed == [STOP, START]


def test_a_silent_peer_does_not_serve(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    stage.settings = {"hosts": 3, "peers": f"h1={stage.peers[0].address} h2=127.0.0.1:1"}
    assert stage.run(now=0).changed == []


def test_of_two_that_mark_themselves_at_once_the_first_goes_on(stage: Stage) -> None:
    stage.peers = [Word("ready up", "down #watch"), Word("ready up"), Word("ready up")]
    stage.settings = {"index": 1, "max_unavailable": 2}
    assert (stage.run(now=60).changed, stage.marks) == ([], set())
    stage.peers[0].words = ["ready up", "down #watch"]
    stage.settings = {"index": 0, "max_unavailable": 1}
    assert stage.run(now=0).changed == [STOP, START]


@pytest.mark.parametrize(
    ("index", "hosts", "now", "begins"),
    [(0, 2, 0, True), (1, 2, 0, False), (1, 2, 70, True), (0, 2, 57, False), (3, 40, 10, False), (3, 40, 190, True)],
)
def test_each_host_begins_in_a_minute_of_its_own(stage: Stage, index: int, hosts: int, now: int, begins: bool) -> None:
    stage.settings = {"index": index, "hosts": hosts, "max_unavailable": hosts, "peers": ""}
    assert (stage.run(now=now).changed == [STOP, START]) == begins


def test_a_restart_that_does_not_help_leaves_it_marked_and_is_reported(stage: Stage) -> None:
    stage.after_start(DIED)
    act = stage.run()
    assert (act.status, stage.marks) == (3, {"watch-llm"})
    assert stage.results == ["restart failed"]
    assert stage.events == ["restart firing", "restart firing"]


def test_a_refused_proof_counts_as_no_help(stage: Stage) -> None:
    stage.questions('echo "17 + 25 is answered with 41" >"$reason"; exit 1')
    assert (stage.run().status, stage.marks) == (3, {"watch-llm"})
    assert "41" in stage.rows[-1][3]


def test_what_an_act_has_left_marked_is_asked_again_and_not_restarted_for_it(stage: Stage) -> None:
    (stage.folder / "state/marks").mkdir()
    (stage.folder / "state/marks/watch-llm").write_text("word=down\n")
    stage.look("idle")
    assert stage.run().changed == []
    assert (stage.marks, stage.results) == (set(), ["tell proven"])


def test_what_an_act_has_left_marked_is_proven_where_the_watch_no_longer_restarts(stage: Stage) -> None:
    stage.settings["act"] = "tell"
    assert (stage.run().changed, stage.results) == ([], [])
    (stage.folder / "state/marks").mkdir()
    (stage.folder / "state/marks/watch-llm").write_text("word=down\n")
    assert (stage.run().changed, stage.marks) == ([], {"watch-llm"})
    stage.look("idle")
    assert (stage.run().changed, stage.marks) == ([], set())


def test_what_a_container_prints_is_kept_in_bounds_and_printable(stage: Stage) -> None:
    stage.program(
        "docker",
        "case $1 in exec) printf '\\033]0;x\\007'; head -c 9000000 /dev/zero | tr '\\0' x ;; *) exit 1 ;; esac",
    )
    stage.run()
    (stacks,) = (stage.home / "failed").glob("*.stacks")
    assert 1_000_000 < stacks.stat().st_size < 8_000_000
    assert stacks.read_bytes().startswith(b"]0;xxx")


def test_an_act_that_is_cut_starts_what_was_proven_and_gives_the_lease_back(stage: Stage) -> None:
    stage.questions("kill -9 $(ps -o ppid= $(ps -o ppid= $$))")
    assert stage.run().status != 0
    assert (stage.folder / "run/lease").exists()
    assert stage.run("after").changed == [START]
    assert stage.results == ["restart cut"]
    assert not (stage.folder / "run/lease").exists()
    stage.questions("exit 0")
    assert stage.run("after").changed == []


def test_the_third_restart_in_its_time_that_does_not_help_leaves_it_out(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    stage.acted(200, 100)
    stage.after_start(DIED)
    act = stage.run()
    assert (act.status, stage.marks) == (3, {"sick-llm"}), act.output
    assert act.changed == [STOP, START, STOP]
    assert "systemctl disable --quiet --no-reload rackwright-llm.service" in act.calls, (
        "nor does it start at the next boot"
    )
    assert stage.results[-2:] == ["restart failed", "sick -"]
    assert stage.events[-1] == "sick firing"
    assert stage.run().changed == []


def test_three_restarts_that_helped_for_a_moment_each_leave_it_out_too(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    stage.acted(240, 160, 80, kind="restart proven")
    assert (stage.run().changed, stage.marks) == ([STOP], {"sick-llm"})


def test_three_restarts_a_day_apart_are_not_sick(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    stage.acted(300000, 200000, 100000, kind="restart proven")
    assert (stage.run().changed, stage.marks) == ([STOP, START], set())


def test_alone_it_is_never_sick_and_pauses_longer_each_time(stage: Stage) -> None:
    stage.after_start(DIED)
    stage.acted(300, 200, 100)
    assert (stage.run().changed, stage.marks) == ([], {"watch-llm"})
    (stage.folder / "state/marks/watch-llm").unlink()
    stage.acted(330, 230, 130)
    assert stage.run().changed == [STOP, START]
    assert stage.marks == {"watch-llm"}
    stage.acted(430, 330, 230, 130)
    assert stage.run().changed == []


def test_a_group_is_never_brought_below_half(stage: Stage) -> None:
    stage.peers = [Word("ready up"), Word("down #sick"), Word("down #sick")]
    stage.settings["max_unavailable"] = 3
    stage.after_start(DIED)
    stage.acted(400, 300, 200)
    act = stage.run()
    assert (act.changed, stage.marks) == ([STOP, START], {"watch-llm"}), act.output


def test_a_release_that_a_run_has_proven_begins_without_a_past(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    now = NOW
    rows = [f"{now - ago} restart failed x\n" for ago in (300, 200, 100)]
    (stage.folder / "state/watch/acts-llm").write_text("".join(rows) + f"{now - 50} clear - x\n")
    assert (stage.run().changed, stage.marks) == ([STOP, START], set())


def test_a_clock_that_was_put_back_makes_no_endpoint_sick_and_none_immune(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    stage.acted(-5000, -5100, -5200)
    assert (stage.run().changed, stage.marks) == ([STOP], {"sick-llm"})


def test_a_clock_that_was_put_back_keeps_the_days_between_restarts_and_lengthens_no_pause(stage: Stage) -> None:
    stage.peers = [Word("ready up")]
    stage.acted(-100000, -200000, -300000, kind="restart proven")
    assert (stage.run().changed, stage.marks) == ([STOP, START], set())
    stage.peers.clear()
    stage.acted(-100000, -100100, -100200)
    assert stage.run().changed == [STOP, START]


def test_gateways_that_ask_are_waited_for_and_one_that_is_gone_is_not(stage: Stage) -> None:
    up = float(Path("/proc/uptime").read_text().split()[0])
    notes = stage.folder / "run-word"
    (notes / "10.0.0.1").write_text(f"last={up - 100:.2f}\nprevious={up - 102:.2f}\nword=ready up\n")
    (notes / "10.0.0.3@other").write_text(f"last={up:.2f}\nprevious={up - 15:.2f}\nword=ready up\n")
    (notes / "10.0.0.2@llm").write_text(f"last={up:.2f}\nprevious={up - 2:.2f}\nword=ready up\n")
    began = time.monotonic()
    assert stage.run().changed == [STOP, START]
    assert 4 < time.monotonic() - began < 20
    assert "gateway" not in stage.rows[-1][3]


def test_a_gateway_that_is_gone_is_named_with_what_the_restart_cut(stage: Stage) -> None:
    up = float(Path("/proc/uptime").read_text().split()[0])
    for name, ago in (("gw1", 100), ("gw2", 50), ("gw3@other", 70)):
        note = stage.folder / "run-word" / f"gateway-{name}{'' if '@' in name else '@llm'}"
        note.write_text(f"last={up - ago:.2f}\nprevious={up - ago - 2:.2f}\nword=ready up\n")
    assert stage.run().changed == [STOP, START]
    named = "not waited for: gateway gw1, gw2, which no longer asks"
    assert stage.rows[-1][3].split("; ")[1] == named
    assert stage.texts[-1].endswith(named)


def test_only_marks_of_endpoints_are_taken_up_again(stage: Stage) -> None:
    marks = stage.folder / "marks"
    marks.mkdir()
    for name in ("watch-llm", "watch-b_2", "watch-llm.new", "watch-", "watch-a b", "watch-LLM", "sick-llm"):
        (marks / name).touch()
    check = render_own("watch-act.j2", beside="# beside", marks=str(marks))
    calls = stage.folder / "calls"
    path = f"{stage.folder / 'bin'}:/usr/bin:/bin"
    subprocess.run(["sh", "-c", check], env={"PATH": path, "CALLS": str(calls), "UNIT_STATE": "x"}, check=True)
    started = {row.split()[-1] for row in calls.read_text().splitlines()}
    assert started == {"rackwright-act@llm.service", "rackwright-act@b_2.service"}


def test_a_member_is_restarted_by_its_head(stage: Stage) -> None:
    (stage.home / "binding").write_text("RANK=1\n")
    (stage.home / "proven-binding").write_text("RANK=1\n")
    assert stage.run().changed == []


def test_without_its_questions_nothing_is_restarted(stage: Stage) -> None:
    (stage.home / "proofs/new").unlink()
    assert (stage.run().changed, stage.results) == ([], ["tell -"])


class Fleet:
    """Hosts of one group that ask each other, and a request that makes hang the host that gets it."""

    def __init__(self, folder: Path, size: int) -> None:
        self.hosts = [Stage(folder / f"h{number}") for number in range(size)]
        words = [Word(now=partial(self.reply, host)) for host in self.hosts]
        for number, host in enumerate(self.hosts):
            host.look("serving")
            host.peers = [peer for index, peer in enumerate(words) if index != number]
            host.settings = {"index": number}
        self.words, self.minute = words, 0

    def reply(self, host: Stage) -> str:
        marks = {mark.removesuffix("-llm") for mark in host.marks}
        return f"down #{min(marks)}" if marks else "ready up"

    def hung(self, host: Stage) -> bool:
        return "state=hung" in (host.folder / "run/watch/llm").read_text()

    @property
    def serving(self) -> int:
        return sum(self.reply(host) == "ready up" and not self.hung(host) for host in self.hosts)

    @property
    def out(self) -> int:
        return sum(self.reply(host) != "ready up" for host in self.hosts)

    def send(self) -> None:
        """Send the request to the first host that says it serves."""
        for host in self.hosts:
            if self.reply(host) == "ready up" and not self.hung(host):
                host.look("hung")
                return

    def look(self) -> None:
        """Let a minute pass: each host whose endpoint hangs acts, or does not."""
        self.minute += 1
        for host in self.hosts:
            if self.hung(host) and "sick-llm" not in host.marks:
                host.look("hung")
                if START in host.run(now=self.minute * 60).changed:
                    host.look("serving")

    def end(self) -> None:
        for peer in self.words:
            peer.shutdown()
            peer.server_close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, 5)
    yield fleet
    fleet.end()


def test_a_request_that_hangs_host_after_host_ends_with_all_of_them_serving(fleet: Fleet) -> None:
    for _ in fleet.hosts:
        fleet.send()
    assert fleet.serving == 0
    while fleet.serving < 5:
        fleet.look()
        assert fleet.out <= 1
        assert fleet.minute <= 6


@in_proof("some 60 acts of five hosts; the case above has each host once")
def test_a_request_that_is_sent_again_and_again_leaves_most_of_them_serving(fleet: Fleet) -> None:
    for _ in range(20):
        fleet.send()
        fleet.look()
        assert sum("sick-llm" in host.marks for host in fleet.hosts) <= 2
    for _ in range(30):
        fleet.minute += 10
        fleet.look()
    assert fleet.serving >= 3
