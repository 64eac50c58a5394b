"""Checks of Docker: it is installed or installable, and it is the one that answers on the host's socket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rackwright.concerns.docker.chains import are_needed, gone
from rackwright.concerns.preflight.row import DRAIN, UNDRAIN, Case, Check
from rackwright.paths import DOCKER_HOST, DOCKER_SOCKET

Verdicts = Iterator[tuple[bool, str, str]]
DAEMON_JSON = "/etc/docker/daemon.json"
OWN = ("fd://", f"unix://{DOCKER_SOCKET}", "unix:///run/docker.sock")
"""Addresses of dockerd's default socket."""
SNAP = "/var/snap/docker/"


def docker(case: Case) -> Verdicts:
    """Check that Docker Engine is installed, or can be."""
    reading = case.docker
    if reading.daemon == "up":
        yield True, f"Docker Engine {'.'.join(map(str, reading.version))}", ""
    elif reading.daemon == "down":
        yield (
            reading.load_state != "masked",
            "installed, does not answer; it will be started",
            "systemctl unmask docker.service",
        )
    else:
        yield (
            "apt" in reading.has,
            "none yet; it will be installed",
            "install Docker Engine by hand: this host has no apt-get",
        )


def snap(case: Case) -> Verdicts:
    """Reject the snap's Docker: it sees few host files, lacks the container toolkit, and updates automatically."""
    answers = case.docker.root_dir.startswith(SNAP)
    alone = "snap.docker" in case.machine.values and case.docker.daemon == "absent"
    if answers or alone:
        fix = "move its containers away, then: snap remove docker; the next run installs Docker Engine"
        yield False, "Docker is the snap, which does not see the folders of models, nor the container toolkit", fix


def rootless(case: Case) -> Verdicts:
    """Reject rootless Docker: it has neither the rights nor the network that endpoints need."""
    users = case.machine.rootless
    answers = any("name=rootless" in str(option) for option in case.docker.info.get("SecurityOptions") or ())
    if answers or (users and case.docker.daemon != "up"):
        who = f" (of user {', '.join(users)})" if users else ""
        fix = "as that user: dockerd-rootless-setuptool.sh uninstall; the next run installs or starts Docker Engine"
        yield False, f"Docker is rootless{who}, and endpoints need root's", fix


def socket(case: Case) -> Verdicts:
    """Check that dockerd listens on this host's default socket, not only elsewhere."""
    if case.docker.daemon != "down":
        return
    places = listens(case)
    if places and not any(address in OWN for address in places):
        fix = f"add {DOCKER_HOST} to `hosts` in {DAEMON_JSON}, or -H {DOCKER_HOST} to dockerd's unit; restart docker"
        yield False, f"dockerd listens on {', '.join(places)} alone, and not on {DOCKER_SOCKET}", fix


def listens(case: Case) -> list[str]:
    """Return the running dockerd's listen addresses, by its command line or its file; empty if none is set or runs."""
    words = case.machine.values.get("dockerd", "").split()
    addresses = [
        address for address, argument in zip([*words[1:], ""], words, strict=False) if argument in ("-H", "--host")
    ]
    addresses += [argument.split("=", 1)[1] for argument in words if argument.startswith(("-H=", "--host="))]
    return addresses + (_in_file(case.docker.files.get(DAEMON_JSON)) if words else [])


def _in_file(text: str | None) -> list[str]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return []
    hosts = found.get("hosts") if isinstance(found, dict) else None
    return [str(address) for address in hosts] if isinstance(hosts, Sequence) and not isinstance(hosts, str) else []


def chains(case: Case) -> Verdicts:
    """Check that Docker's chains exist: without them running endpoints keep serving, but their next start would fail.

    Where the run itself restarts dockerd to make them, in the host's turn, the check passes.
    """
    reading = case.docker
    if not reading.lacks or not are_needed(case.settings) or (case.restarts_dockerd and not reading.others_stop):
        return
    restart = "systemctl restart docker"
    others = f"; {reading.foreign_running} other containers run and stop with dockerd" if reading.others_stop else ""
    serving = f"; {', '.join(reading.serving)} still serves" if reading.serving else ""
    fix = f"{DRAIN} --reason chains; on this host: {restart}; {UNDRAIN}"
    text = f"{gone(reading.lacks)}, so no container that publishes a port can start{serving}{others}"
    yield False, text, fix if reading.serving else restart


def containerd(case: Case) -> Verdicts:
    """Check that containerd runs: without it containers keep running, but Docker can neither stop nor start one."""
    commit = case.docker.info.get("ContainerdCommit")
    if isinstance(commit, dict) and commit.get("ID") == "N/A":
        text = "containerd does not answer, so Docker can neither stop nor start a container"
        yield False, text, "systemctl start containerd; journalctl -u containerd --lines 50"


def answers(case: Case) -> Verdicts:
    """Stop a host whose firewalld does not answer: no dockerd and no container with a published port would start."""
    if case.docker.waits and (are_needed(case.settings) or case.docker.daemon == "down"):
        text, _, fix = case.docker.waits[0].partition("; next, ")
        yield False, text, fix


DOCKER = (
    Check("Docker", "stop", docker, "RW3120"),
    Check("Docker's chains", "stop", chains, "RW3182"),
    Check("containerd", "stop", containerd, "RW3192"),
    Check("Docker's next start", "stop", answers, "RW3102"),
    Check("Docker as a snap", "stop", snap, "RW3150"),
    Check("rootless Docker", "stop", rootless, "RW3151"),
    Check("Docker's socket", "stop", socket, "RW3152"),
)
