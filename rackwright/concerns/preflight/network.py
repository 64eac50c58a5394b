"""Checks of ports, and of the servers of pending downloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rackwright.concerns.preflight.row import Case, Check, Listener, Reach
from rackwright.settings.allow_from import who

Verdicts = Iterator[tuple[bool, str, str]]
CURL_TLS = {35, 51, 58, 60, 77, 83, 91}
NAMES = {"image": "registry", "model": "hub", "encoding": "encodings"}


def port(case: Case) -> Verdicts:
    """Check that the port is free, or held by Rackwright's endpoint."""
    if "ss" in case.machine.values:
        yield True, "not checked: this host has no ss", ""
        return
    for name, endpoint in case.endpoints.items():
        listeners = [entry for entry in case.machine.listeners if entry.port == endpoint.port]
        taken = [entry for entry in listeners if not (entry.ours or entry.nameless or _goes(case, entry))]
        if not taken:
            yield True, f"{endpoint.port} is {_holder(listeners)}", ""
            continue
        fix = f"stop it, or give endpoint {name} another `port`: {inspect_command(taken)}"
        yield False, f"{endpoint.port} is taken by {'; '.join(holders(taken))}", fix


def holders(taken: Sequence[Listener]) -> Iterator[str]:
    """Yield each process once, with all its listen addresses."""
    for pid in dict.fromkeys(entry.pid for entry in taken):
        entries = [entry for entry in taken if entry.pid == pid]
        addresses = " and ".join(dict.fromkeys(entry.address for entry in entries if entry.address))
        what = f"container {entries[0].container}" if entries[0].container else entries[0].name
        yield f"{what}, pid {pid}, user {entries[0].user}" + (f", at {addresses}" if addresses else "")


def inspect_command(taken: Sequence[Listener]) -> str:
    """Return the command that shows the process on a port."""
    containers = list(dict.fromkeys(entry.container for entry in taken if entry.container))
    pids = list(dict.fromkeys(str(entry.pid) for entry in taken if entry.pid))
    if containers:
        return f"docker ps --filter name={containers[0]}"
    return f"ps -fp {','.join(pids)}" if pids else f"ss -ltnp 'sport = :{taken[0].port}'"


def _goes(case: Case, entry: Listener) -> bool:
    """Return True if it belongs to a unit that an operator made and that will be moved out of the way."""
    return case.sets_apart and entry.unit in case.foreign


def _holder(listeners: Sequence[Listener]) -> str:
    if any(entry.nameless for entry in listeners):
        return "held for a container that Docker does not name now"
    return "ours" if listeners else "free"


def shared_port(case: Case) -> Verdicts:
    """Check for two endpoints of one host on one port."""
    counts = Counter(endpoint.port for endpoint in case.endpoints.values())
    for number, times in counts.items():
        if times > 1:
            yield False, f"{times} endpoints have port {number}", "give each endpoint its own `port`"


def open_port(case: Case) -> Verdicts:
    """Check which networks may reach the port; the proof itself uses SSH."""
    for endpoint in case.endpoints.values():
        if endpoint.is_local:
            yield True, f"{endpoint.port} on {endpoint.address} only", ""
        elif not case.closes_ports:
            yield True, f"{endpoint.port}: firewall() is not called, so who may reach it is not ours to say", ""
        elif endpoint.networks:
            yield True, f"{endpoint.port} for {who(endpoint.networks)}", ""
        else:
            fix = "leave allow_from out for private networks alone, or name those that may: allow_from: [10.0.0.0/8]"
            yield False, f"{endpoint.port} is open to everybody who reaches this host", fix


def reach(case: Case) -> Verdicts:
    """Check that the servers of pending downloads answer."""
    needed = {NAMES[fetch.kind] for fetch in case.fetches}
    for answer in case.machine.reached:
        if answer.name in needed:
            yield answer.curl == 0 and answer.status < 500, *_said(case, answer)


def _said(case: Case, answer: Reach) -> tuple[str, str]:
    where = f"{answer.name} {answer.url}"
    if answer.curl in CURL_TLS:
        fix = (
            "set paths.private_ca to the PEM file of the site's authority"
            if not case.settings.paths.private_ca
            else "paths.private_ca does not vouch for it yet"
        )
        return f"{where}: its certificate is not trusted", fix
    if answer.curl != 0:
        return (
            f"{where}: no answer within 2 s (curl {answer.curl})",
            "set proxy or mirrors, or open the way; from this host: curl -I " + answer.url,
        )
    if answer.status >= 500:
        return f"{where}: HTTP {answer.status}", "it has trouble of its own: try again later"
    return f"{where}: answers", ""


NETWORK = (
    Check("port", "stop", port, "RW3146"),
    Check("shared port", "stop", shared_port, "RW3147"),
    Check("open port", "warn", open_port, "RW3148"),
    Check("reachable", "warn", reach, "RW3149"),
)
