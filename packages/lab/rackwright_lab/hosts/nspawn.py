"""One booted host: a systemd-nspawn, started again when the host reboots, in its own control group."""

from __future__ import annotations

import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from rackwright_lab.machine import cgroups, devices
from rackwright_lab.machine.shell import LabError, run

# With --keep-unit a reboot inside ends nspawn with this status.
REBOOTED = 133
# Each boot has a group of its own, since a group that hands controllers down takes no processes. nspawn leaves it for
# one below it and hands down what it likes; a host is to have all that this machine has.
SUPERVISOR = f"""
hand_down() {{
  tries=0
  until read -r _ <"$1/supervisor/cgroup.procs" || [ $tries = 100 ]; do
    sleep 0.1; tries=$((tries + 1))
  done 2>/dev/null
  for name in $(cat "$1/cgroup.controllers"); do echo "+$name" >"$1/cgroup.subtree_control"; done
}}
echo $$ >"$GROUP/watch/cgroup.procs"
boot=0
while :; do
  boot=$((boot + 1))
  own=$GROUP/machine/$boot
  mkdir -p "$own"
  hand_down "$own" &
  OWN=$own sh -c 'echo $$ >"$OWN/cgroup.procs" && exec "$@"' "$0" "$@"
  [ $? -eq {REBOOTED} ] || break
done
"""
SECURITY = ("--capability=all", "--system-call-filter=add_key keyctl bpf")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Machine:
    """How one host is booted: its name, its root, its bridge, and folders of this machine bound into it.

    denied: device nodes of this machine that no process in it opens or makes.
    """

    name: str
    tag: str
    root: Path
    bridge: str
    binds: tuple[tuple[Path, str], ...]
    console: Path
    denied: tuple[Path, ...] = ()

    @property
    def group(self) -> Path:
        """Its control group."""
        return cgroups.unified_root() / self.tag / self.name

    def start(self) -> None:
        """Boot it; returns at once. Raises LabError when it runs already."""
        if self.leader() is not None:
            raise LabError(f"{self.name} is running already")
        self._drop_link()
        group = cgroups.make(self.tag, self.name)
        for part in ("watch", "machine"):
            (group / part).mkdir(exist_ok=True)
        for folder in (group, group / "machine"):
            cgroups.hand_down(folder)
        if self.denied:
            devices.deny(group / "machine", [devices.numbers(node) for node in self.denied])
        environment = {"PATH": PATH, "GROUP": str(group), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        with self.console.open("ab") as console:
            subprocess.Popen(
                ["setsid", "--fork", "sh", "-c", SUPERVISOR, self.name, *self._argv()],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=environment,
                cwd="/",
            ).wait()

    def _drop_link(self) -> None:
        # The kernel takes the link of a killed host away some time after its last process; nspawn would refuse to boot.
        run("ip", "link", "delete", "dev", f"vb-{self.name}", check=False)

    def _argv(self) -> list[str]:
        binds = [f"--bind={outside}:{inside}" for outside, inside in self.binds]
        return [
            "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--machine={self.name}",
            f"--directory={self.root}", f"--network-bridge={self.bridge}", "--console=read-only",
            "--resolv-conf=off", "--timezone=off", "--link-journal=no", *SECURITY, *_memory_locks(), *binds,
        ]  # fmt: skip

    def leader(self) -> int | None:
        """Return the host's PID 1 as this machine counts, or None when it does not run."""
        for pid in cgroups.members(self.group) if self.group.exists() else []:
            if _pids_in_namespaces(pid)[1:] == ["1"]:
                return pid
        return None

    def is_off(self) -> bool:
        """Whether nothing of it runs, its supervisor included."""
        return not self.group.exists() or not cgroups.members(self.group)

    def wait_off(self, seconds: float) -> bool:
        """Wait until nothing of it runs; False when it still does after so many seconds."""
        deadline = time.monotonic() + seconds
        while not self.is_off():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def kill(self) -> None:
        """End it as a lost power supply would."""
        # The supervisor outlives its nspawn for a moment, to collect its exit status: nothing else would.
        cgroups.end(self.group / "machine")
        self.wait_off(5)
        cgroups.end(self.group)

    def enter(self, *argv: str) -> list[str]:
        """Return the command line that runs argv inside, as the host's root. Raises LabError when it is off."""
        leader = self.leader()
        if leader is None:
            raise LabError(f"{self.name} is off. Start it with: rackwright lab up, or host.start()")
        clean = ["env", "-i", "-C", "/root", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8", "TERM=dumb"]
        # Booted from a chroot, a host's root is not the one that its mount namespace begins with.
        return ["nsenter", "--target", str(leader), "--all", "--root", *clean, *argv]


def _memory_locks() -> list[str]:
    """Lift the hosts' limit where this machine may lift its own: containers that ask for memlock=-1 start then."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return ["--rlimit=MEMLOCK=infinity"] if hard == resource.RLIM_INFINITY else []


def _pids_in_namespaces(pid: int) -> list[str]:
    try:
        lines = Path("/proc", str(pid), "status").read_text().splitlines()
    except OSError:
        return []
    return next((row.split()[1:] for row in lines if row.startswith("NSpid:")), [])
