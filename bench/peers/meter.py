"""What a program on this machine costs together with the lab hosts that it works on: clock, CPU, memory, commands.

The program and all its children run in a control group of their own, so that what detaches itself (an OpenSSH master)
counts as well. Hosts and program share the machine, and so does whatever else runs there: that is reported too.
"""

from __future__ import annotations

import compileall
import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rackwright_lab import Host
from rackwright_lab.machine import cgroups

ROOT = Path(__file__).parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
LIMIT = 1800
"""Seconds for one program."""
SAMPLE = 0.1
"""Seconds between two looks at a program's memory."""
ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True)
class Command:
    """A program with what it needs."""

    words: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a program ended, and what it printed, errors among it."""

    status: int
    output: str


@dataclass(frozen=True)
class Spent:
    """What one run cost: seconds by the clock, CPU seconds of client and hosts; and the cores that others kept busy."""

    wall: float
    client: float
    hosts: float
    others: float

    @property
    def cpu(self) -> float:
        """Client and hosts together."""
        return self.client + self.hosts


class Meter:
    """Runs programs and measures them; a context, since its control group must go again."""

    def __init__(self, hosts: Sequence[Host], settle: float = 3.0) -> None:
        self._hosts, self._settle = hosts, settle
        self._group = cgroups.unified_root() / f"rackwright-bench-{os.getpid()}"
        self._idle = 0.0
        self.open_files = 0
        """The most that one process of the last program that was watched had open."""

    def __enter__(self) -> Meter:
        compile_as_installed()
        self._group.mkdir()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        cgroups.end(self._group)

    def at_rest(self, seconds: float) -> float:
        """CPU that all hosts use in a second while idle; later measures leave it out."""
        before = self._of_hosts()
        time.sleep(seconds)
        self._idle = (self._of_hosts() - before) / seconds
        return self._idle

    def spend(self, command: Command) -> tuple[Outcome, Spent]:
        """Run a program; a moment longer than it, since a login ends after its client."""
        time.sleep(self._settle)
        before, begun = self._used(), time.monotonic()
        outcome = self._run(command)
        wall = time.monotonic() - begun
        time.sleep(self._settle)
        client, hosts, busy = (new - old for new, old in zip(self._used(), before, strict=True))
        self._end_leftovers()
        watched = wall + self._settle
        measured = client + hosts
        spent = Spent(wall, client, max(0.0, hosts - self._idle * watched), max(0.0, busy - measured) / watched)
        return outcome, spent

    def watch(self, command: Command) -> tuple[Outcome, int, int]:
        """Run a program and return also its peak memory in bytes, and how many commands its hosts got at most."""
        commands = [commands_of(host) for host in self._hosts]
        done, peak = threading.Event(), [0]
        self.open_files = 0
        sampler = threading.Thread(target=self._sample, args=(done, peak))
        sampler.start()
        try:
            outcome = self._run(command)
        finally:
            done.set()
            sampler.join()
        self._end_leftovers()
        most = max(commands_of(host) - old for host, old in zip(self._hosts, commands, strict=True))
        return outcome, peak[0], most

    def _run(self, command: Command) -> Outcome:
        words = ["sh", "-c", ENTER, str(self._group), *command.words]
        done = subprocess.run(
            words,
            check=False,
            cwd=command.folder,
            env={**os.environ, **command.environment},
            input=command.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        return Outcome(done.returncode, done.stdout)

    def _sample(self, done: threading.Event, peak: list[int]) -> None:
        while not done.wait(SAMPLE):
            members = cgroups.members(self._group)
            peak[0] = max(peak[0], memory(members))
            self.open_files = max(self.open_files, *map(open_files, members), 0)

    def _end_leftovers(self) -> None:
        """Masters of OpenSSH stay for the next run, which is to begin as this one did."""
        for pid in cgroups.members(self._group):
            with suppress(ProcessLookupError):
                os.kill(pid, 15)

    def _used(self) -> tuple[float, float, float]:
        """CPU seconds until now: of the client, of all hosts, and of the whole machine."""
        return seconds_of(self._group), self._of_hosts(), busy_seconds(Path("/proc/stat").read_text())

    def _of_hosts(self) -> float:
        return sum(seconds_of(host.machine.group) for host in self._hosts)


def compile_as_installed(root: Path = ROOT) -> None:
    """Compile the product's modules, as pip does when it installs them.

    pyinfra tells Python to write no bytecode: in a checkout it compiles at each start what has changed since some other
    command loaded it.
    """
    compileall.compile_dir(root / "rackwright", quiet=1)


def seconds_of(group: Path) -> float:
    """CPU seconds that a control group has used."""
    return int((group / "cpu.stat").read_text().partition("usage_usec ")[2].split()[0]) / 1e6


def busy_seconds(stat: str) -> float:
    """CPU seconds of all processors by /proc/stat, but for those idle, waiting for a disk, or counted twice."""
    user, nice, system, _idle, _waiting, irq, softirq, steal, *_ = map(int, stat.split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq + steal) / TICKS


def memory(processes: Sequence[int]) -> int:
    """Bytes that processes have together, each shared page once; of a single one its own peak, if that is more."""
    shares, peaks = [0], [0]
    for pid in processes:
        with suppress(OSError):
            shares.append(_kilobytes("Pss", Path(f"/proc/{pid}/smaps_rollup").read_text()))
            peaks.append(_kilobytes("VmHWM", Path(f"/proc/{pid}/status").read_text()))
    return max(sum(shares), *peaks) * 1024


def open_files(process: int) -> int:
    """How many files a process has open; none when it has ended."""
    try:
        return len(list(Path(f"/proc/{process}/fd").iterdir()))
    except OSError:
        return 0


def _kilobytes(name: str, text: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def commands_of(host: Host) -> int:
    """Commands that sshd has started for others since the host was made."""
    journal = host.run("journalctl -u ssh --no-pager -o cat | grep -c 'Starting session'", check=False).stdout
    return int(journal.strip() or 0)
