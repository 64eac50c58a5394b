"""Checks between the hosts of one endpoint, and of their network; none on a host that serves alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rackwright.concerns.endpoint.group.other_hosts import TEARDOWN, in_words
from rackwright.concerns.gpus import SeenGpus
from rackwright.concerns.preflight.row import Case, Check, MemberSeen, SeenMachine
from rackwright.engines.launch import launch_port
from rackwright.hostside import host_script
from rackwright.settings.host_settings import EndpointSettings, HostSettings

ELSEWHERE = "RW3191"
"""Code of the row of endpoints that other hosts serve than the settings want."""
Verdicts = Iterator[tuple[bool, str, str]]
LAUNCHERS = ("ssh", "sshd", "ssh-keygen")
"""Programs that mpirun on the head uses to start ranks on the others; all of them are OpenSSH's."""


def members_read(settings: HostSettings) -> str:
    """Probe the group's other hosts and the network between; nothing on a host that serves alone."""
    group = settings.group
    if group is None:
        return ""
    endpoint = settings.all_endpoints[group.endpoint]
    others = " ".join(member.address for member in group.members if member != group.member)
    port, transport = endpoint.group_port + 1, endpoint.group_transport
    launch = " ".join(LAUNCHERS) if launch_port(endpoint) else ""
    words = {"own": group.member.address, "others": others, "transport": transport, "launch": launch}
    return host_script("members_read", port=port, **words)


def parse_members(lines: list[list[str]]) -> tuple[MemberSeen, ...]:
    """Parse the answer of each other host."""
    return tuple(MemberSeen(*words[1:]) for words in lines if words[0] == "member" and len(words) == 4)


def parse_rdma(lines: list[list[str]]) -> Mapping[str, str]:
    """Parse the state of each RDMA port, by device and port."""
    return {words[1]: words[2] for words in lines if words[0] == "rdma" and len(words) == 3}


def common(machine: SeenMachine, gpus: SeenGpus) -> Mapping[str, str]:
    """Return one host's values that must be the same on all hosts of a group; unknown ones are left out."""
    values = machine.values
    found = {
        "the set of GPUs": _kinds(gpus),
        "the NVIDIA driver": gpus.driver,
        "the NVIDIA Container Toolkit": values.get("toolkit"),
        "the MTU towards the others": values.get("members.mtu"),
        "/etc/nvidia-imex/nodes_config.cfg": (values.get("imex.nodes") or "")[:12],
    }
    return {what: value for what, value in found.items() if value}


def _kinds(gpus: SeenGpus) -> str:
    """Return the GPUs' count by model: an engine's ranks on unequal GPUs are as slow, and as small, as the weakest."""
    return ", ".join(f"{number} {name}" for name, number in sorted(Counter(gpu.name for gpu in gpus.gpus).items()))


def _shared(case: Case) -> EndpointSettings | None:
    group = case.settings.group
    return case.endpoints[group.endpoint] if group else None


def _named(case: Case, address: str) -> str:
    group = case.settings.group
    names = {member.address: member.host for member in group.members} if group else {}
    return f"{names.get(address, 'a host')} ({address})"


def reached(case: Case) -> Verdicts:
    """Check that each other host is reached at its address, from the interface with this host's address."""
    if case.settings.group is None:
        return
    member = case.settings.group.member
    if not case.machine.values.get("members.interface"):
        fix = f"ip -4 address show; set fabric_address of {member.host} to an address that it has"
        yield False, f"no interface of this host has {member.address}, its address towards the others", fix
        return
    for one in case.machine.members:
        text = f"{_named(case, one.address)} {'answers' if one.reached else 'does not answer'}"
        fix = f"from this host: ping -I {member.address} {one.address}; fabric_address of both, cables, routes"
        yield one.reached, text, fix


def large(case: Case) -> Verdicts:
    """Check that packets of this host's full size arrive undivided; only where a small one was answered."""
    mtu = case.machine.number("members.mtu")
    for member in case.machine.members if mtu else ():
        if not member.pinged:
            continue
        ping = f"ping -M do -s {(mtu or 0) - 28} {member.address}"
        fix = f"give both interfaces and each switch between them one MTU: {ping}"
        text = f"{_named(case, member.address)}: packets of {mtu} bytes {'arrive' if member.large else 'do not arrive'}"
        yield member.large, text, fix


def alike(case: Case) -> Verdicts:
    """Check the values that must be the same on all hosts; the last host that is read sees all the others."""
    ours = common(case.machine, case.gpus)
    for host, theirs in case.others.items():
        for what in ours.keys() & theirs.keys():
            if ours[what] != theirs[what]:
                text = f"{what} is {ours[what]} here and {theirs[what]} on {host}"
                yield False, text, "make them the same on all hosts of the endpoint"
    if case.others and all(ours.get(key) == value for one in case.others.values() for key, value in one.items()):
        yield True, f"as on {', '.join(case.others)}: {', '.join(ours)}", ""


def rdma(case: Case) -> Verdicts:
    """Check that the devices exist and a port is active, where RDMA is requested."""
    shared = _shared(case)
    if shared is None or shared.group_transport != "rdma":
        return
    ports = case.machine.rdma
    active = [name for name, state in ports.items() if state == "ACTIVE"]
    if not ports:
        yield (
            False,
            "this host has no RDMA device",
            "rdma link show; the network card's driver; or group_transport: any",
        )
    elif not active:
        states = ", ".join(f"{name} {state}" for name, state in ports.items())
        yield False, f"no RDMA port is active: {states}", "cables and switch; ibstat; rdma link show"
    elif case.machine.values.get("rdma.verbs") != "yes":
        yield False, "/dev/infiniband/uverbs0 is missing", "modprobe ib_uverbs"
    else:
        yield True, f"active: {', '.join(active)}", ""


def imex(case: Case) -> Verdicts:
    """Check IMEX where NVLink between hosts is requested: the driver's version, its domain up, and a channel."""
    shared = _shared(case)
    if shared is None or shared.group_transport != "nvlink":
        return
    values, driver = case.machine.values, case.gpus.driver
    state, version = values.get("imex.state", "not known"), values.get("imex.version")
    channel = "; options nvidia NVreg_CreateImexChannel0=1 in /etc/modprobe.d makes it at each boot"
    if state == "missing":
        yield False, "nvidia-imex is not installed", "install the nvidia-imex of the driver's version"
    elif version and driver and version != driver:
        yield (
            False,
            f"nvidia-imex is {version} and the driver {driver}",
            "install the nvidia-imex of the driver's version",
        )
    elif "imex.nodes" not in values:
        yield (
            False,
            "/etc/nvidia-imex/nodes_config.cfg is missing",
            "write all hosts' addresses there, the same on each",
        )
    elif state != "UP":
        yield (
            False,
            f"its domain is {state}",
            "nvidia-imex-ctl -N; systemctl restart nvidia-imex; journalctl -u nvidia-imex",
        )
    else:
        present = values.get("imex.channels") == "yes"
        text = "its domain is up" if present else "no channel: /dev/nvidia-caps-imex-channels is empty"
        yield present, text, f"nvidia-modprobe -c 0{channel}"


def launchers(case: Case) -> Verdicts:
    """Check for the programs that start ranks on the other hosts; only where mpirun starts them."""
    shared = _shared(case)
    if shared is None or launch_port(shared) is None:
        return
    lacking = (case.machine.values.get("members.lacking") or "").split()
    fix = "install OpenSSH: apt-get install openssh-server"
    yield not lacking, f"{', '.join(lacking or LAUNCHERS)} {'missing' if lacking else 'there'}", fix


def elsewhere(case: Case) -> Verdicts:
    """Reject a change of the hosts that serve an endpoint: no switch leads there, and nothing is written before."""
    for name in case.elsewhere:
        yield False, in_words(name), f"{TEARDOWN}, then the deploy"


MEMBERS = (
    Check("hosts of endpoints", "stop", elsewhere, ELSEWHERE),
    Check("other hosts", "stop", reached, "RW3170"),
    Check("large packets", "stop", large, "RW3171"),
    Check("equal hosts", "stop", alike, "RW3172"),
    Check("RDMA", "stop", rdma, "RW3173"),
    Check("IMEX", "stop", imex, "RW3174"),
    Check("SSH between hosts", "stop", launchers, "RW3180"),
)
