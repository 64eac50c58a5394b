"""A lab host as tests and users handle it: run a command, reset, reboot, cut its network."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rackwright_lab.gpu import pose
from rackwright_lab.hosts import base, dress, nspawn
from rackwright_lab.machine import network
from rackwright_lab.machine.paths import Paths
from rackwright_lab.machine.shell import LabError, failure, run
from rackwright_lab.servers.proxy import Proxy

BOOT_SECONDS = 120.0
POWER_OFF_SECONDS = 60.0
# Their files must not be on an overlay, or Docker falls back to copying every layer.
OUTSIDE = {"docker": "/var/lib/docker", "containerd": "/var/lib/containerd"}


@dataclass(frozen=True)
class Host:
    """One host of a lab. `kind` is "bare" (no Docker) or "lived" (Docker and a past)."""

    lab: Paths
    name: str
    kind: str
    address: str
    lower: str
    layer: Path
    user: str = base.USER
    port: int = 22
    devices: tuple[Path, ...] = ()
    """Device nodes of this machine's own GPUs that it has; without any it poses as a machine with GPUs."""
    denied: tuple[Path, ...] = ()
    """Device nodes of this machine's GPUs that other hosts have: it can neither open nor make them."""

    @property
    def folder(self) -> Path:
        """Its folder in the lab on this machine."""
        return self.lab.hosts / self.name

    @property
    def root(self) -> Path:
        """Its root file system as this machine sees it (without what is bound or mounted inside)."""
        return self.folder / "root"

    @property
    def address6(self) -> str:
        """Its IPv6 address."""
        return network.address6(self.address)

    @property
    def key(self) -> Path:
        """The private key that logs in as `user`."""
        return self.lab.user_key

    @property
    def known_hosts(self) -> Path:
        """The known_hosts file with the keys of all hosts of the lab."""
        return self.lab.known_hosts

    @property
    def host_key(self) -> Path:
        """Its own private host key."""
        return self.folder / "ssh_host_ed25519_key"

    @cached_property
    def machine(self) -> nspawn.Machine:
        """Its systemd-nspawn machine."""
        binds = tuple((self.folder / name, inside) for name, inside in OUTSIDE.items())
        binds += tuple((node, str(node)) for node in self.devices)
        console = self.folder / "console.log"
        return nspawn.Machine(self.name, self.lab.tag, self.root, self.lab.bridge, binds, console, self.denied)

    @property
    def gpu(self) -> pose.Gpus:
        """The switches of its GPUs."""
        return pose.Gpus(self)

    @property
    def is_on(self) -> bool:
        """Whether it runs, booted or not yet."""
        return self.machine.leader() is not None

    # -- its life

    def make(self) -> None:
        """Lay a fresh disk and dress it; nothing boots yet. Keeps its host key when it has one."""
        self.unmake()
        for name in ("root", "upper", "work", *OUTSIDE):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._mount()
        if not self.host_key.exists():
            self._make_host_key()
        dress.host(self)
        (self.folder / "made").touch()

    @property
    def is_made(self) -> bool:
        """Whether its disk is laid and dressed."""
        return (self.folder / "made").exists()

    def start(self, wait: bool = True) -> None:
        """Power on; with `wait` until systemd says running (or degraded) and sshd answers."""
        if not self.root.is_mount():
            self._mount()
        self.machine.start()
        if wait:
            self.wait_up()

    def _mount(self) -> None:
        layers = f"lowerdir={self.layer}:{self.lower},upperdir={self.folder}/upper,workdir={self.folder}/work"
        run("mount", "-t", "overlay", "-o", layers, self.name, self.root)

    def power_off(self) -> None:
        """Shut down in good order; a host that does not within a minute loses its power."""
        if self.is_on:
            self._inside("systemctl", "poweroff", "--no-wall", check=False)
            self.machine.wait_off(POWER_OFF_SECONDS)
        self.machine.kill()

    def kill_power(self) -> None:
        """Lose power at once: nothing inside gets a chance to write."""
        self.machine.kill()

    def reboot(self) -> None:
        """Reboot in good order and wait until it is up again, with its disk."""
        before = self.machine.leader()
        self._inside("systemctl", "reboot", "--no-wall", check=False)
        deadline = time.monotonic() + BOOT_SECONDS
        while self.machine.leader() in (before, None):
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} did not come back from its reboot; its console: {self.machine.console}")
            time.sleep(0.05)
        self.wait_up()

    def reset(self) -> None:
        """Make a fresh disk and an empty Docker, then boot: as after a reinstallation, with the same host key."""
        self.machine.kill()
        self.make()
        self.start()

    def unmake(self) -> None:
        """Take its disk away; the host must be off."""
        (self.folder / "made").unlink(missing_ok=True)
        if self.root.is_mount():
            run("umount", self.root)
        for name in ("root", "upper", "work", *OUTSIDE):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def wait_up(self, seconds: float = BOOT_SECONDS) -> str:
        """Wait until it has booted; returns what systemd says of it: "running" or "degraded".

        Raises LabError with the console's last lines when it does not come up.
        """
        deadline = time.monotonic() + seconds
        state = ""
        while time.monotonic() < deadline:
            state = self._state() if self.is_on else ""
            if state in ("running", "degraded") and self._ssh_answers():
                return state
            time.sleep(0.1)
        raise LabError(
            f"{self.name} did not boot within {seconds:.0f} s (systemd: {state or 'no answer'}):\n{self.console()}"
        )

    def _state(self) -> str:
        """Return systemd's state once the boot has ended or five seconds have passed; nothing when it cannot answer."""
        try:
            # A client that asks while the bus comes up may miss the one signal that --wait waits for.
            return self._inside("timeout", "5", "systemctl", "is-system-running", "--wait", check=False).stdout.strip()
        except LabError:
            # A PID 1 that boots moves to another control group, and is in neither for a moment.
            return ""

    def _ssh_answers(self) -> bool:
        try:
            with socket.create_connection((self.address, self.port), timeout=2) as link:
                return link.recv(4) == b"SSH-"
        except OSError:
            # Not attached to the bridge by choice of a test, or not listening yet.
            return False

    # -- what runs in it

    def run(
        self,
        command: str,
        user: str = "root",
        stdin: str | None = None,
        timeout: float = 120,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell line in the host from this machine, without SSH (about 20 ms).

        Args: the line, the user it runs as, text for its standard input, seconds until it is ended.
        Raises LabError with what it said when it fails and `check` is on, or when the host is off.
        """
        shell = ["sh", "-c", command] if user == "root" else ["runuser", "-l", user, "-c", command]
        return self._inside(*shell, stdin=stdin, timeout=timeout, check=check)

    def _inside(
        self, *argv: str, stdin: str | None = None, timeout: float = 120, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = run(*self.machine.enter(*argv), stdin=stdin, timeout=timeout, check=False)
        if check and done.returncode != 0:
            words = [f"[{self.name}]", shlex.join(argv[-1:])]
            raise LabError(failure(words, done.returncode, done.stderr or done.stdout))
        return done

    def journal(self, *arguments: str) -> str:
        """Its journal as text; arguments go to journalctl ("-u", "ssh")."""
        return self._inside("journalctl", "--no-pager", "--output=short-monotonic", *arguments).stdout

    def console(self, lines: int = 15) -> str:
        """Return the last lines of its console."""
        log = self.machine.console
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""

    def ssh_argv(self, *command: str) -> list[str]:
        """Return the ssh command line of an outside user: key login, strictly checked host key."""
        options = {
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "ConnectTimeout": "10",
        }
        flags = [argument for name, value in options.items() for argument in ("-o", f"{name}={value}")]
        login = ["-i", str(self.key), "-p", str(self.port), f"{self.user}@{self.address}"]
        return ["ssh", "-F", "/dev/null", *flags, *login, *command]

    def ssh(self, command: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command over real SSH as the user; never raises for its exit status."""
        return run(*self.ssh_argv(command), timeout=timeout, check=False)

    # -- what can be wrong with it

    def set_engine_faults(self, *rules: Mapping[str, Any]) -> None:
        """Let the stand-in engines of this host fail; rules as rackwright_lab.standins.engine.faults has them.

        Without a rule they work again. Running engines see the change.
        """
        path = self.root / "etc/rackwright-lab/faults.json"
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({"engine": list(rules)}))
        partial.rename(path)

    def fill_disk(self, folder: str, free_mib: int) -> None:
        """Put a small file system over a folder, with its contents copied, so that it runs full after `free_mib`."""
        used = int(self.run(f"mkdir -p {folder} && du -sm {folder} | cut -f1").stdout)
        self.run(
            f"set -e; mount -t tmpfs -o size={used + free_mib}m small /mnt; cp -a {folder}/. /mnt/; "
            f"mount --bind /mnt {folder}; umount /mnt"
        )

    def free_disk(self, folder: str) -> None:
        """Take the small file system away again; what lay below comes back."""
        self.run(f"umount --lazy {folder}")

    # -- its network and its identity

    def cut_network(self) -> None:
        """Unplug its cable: packets are dropped in silence."""
        run("ip", "link", "set", self._link(), "nomaster")

    def restore_network(self) -> None:
        """Plug the cable in again."""
        run("ip", "link", "set", self._link(), "master", self.lab.bridge)

    def limit_line(self, megabits: float, sends: float | None = None, queue: int = 400) -> None:
        """Let it receive so many megabits a second until its next boot, and send so many; default: what it can.

        queue: milliseconds that a packet waits before it is dropped.
        """
        run("tc", "qdisc", "replace", "dev", self._link(), "root", *_shape(megabits, queue))
        if sends is not None:
            self._inside("tc", "qdisc", "replace", "dev", "host0", "root", *_shape(sends, queue))

    def wall_in(self, proxy: Proxy) -> None:
        """Leave it no way out but through that proxy; this machine still reaches it."""
        network.wall_in(self.lab, self.address, proxy.server.address, proxy.server.port)

    def let_out(self) -> None:
        """Open its ways out again."""
        network.let_out(self.lab, self.address)

    def _link(self) -> str:
        return network.link_of(int(self._inside("cat", "/sys/class/net/host0/iflink").stdout))

    def _make_host_key(self) -> None:
        self.host_key.unlink(missing_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", self.host_key)

    def public_host_key(self) -> str:
        """Its public host key as a known_hosts file has it: type and key."""
        kind, key = self.host_key.with_suffix(".pub").read_text().split()[:2]
        return f"{kind} {key}"

    def new_host_key(self) -> str:
        """Give it another host key, as a reinstallation would, and return it; known_hosts stays."""
        self._make_host_key()
        dress.host_key(self)
        if self.is_on:
            self._inside("systemctl", "restart", "ssh")
        return self.public_host_key()


def _shape(megabits: float, queue: int) -> tuple[str, ...]:
    return ("tbf", "rate", f"{round(megabits * 1000)}kbit", "burst", "64kb", "latency", f"{queue}ms")
