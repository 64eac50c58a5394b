"""Firewall: the seeds' rules for containers, and who may reach each endpoint's port, IPv4 and IPv6.

A published port never passes INPUT: who reaches it is decided in DOCKER-USER, after DNAT, by the port that the
client asked for. INPUT decides for host-network endpoints, and for what docker-proxy answers by itself.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackwright.aside import foreigners, kept_aside, refusal
from rackwright.change import Change, Guarded, Owned, Refuse, Shell, Step, WriteFile
from rackwright.concern import Concern, HostReading
from rackwright.concerns.daemon import DAEMON_JSON, BrokenDaemonJsonError, parse_daemon_json
from rackwright.concerns.docker import DOCKER, SeenDocker
from rackwright.concerns.endpoint.formats import readable
from rackwright.concerns.firewall_rules import (
    DOCKER_USER,
    FAMILIES,
    INPUT,
    Listeners,
    endpoint_rules,
    filtered_in_docker_user,
    forwarding_chain,
    warnings,
)
from rackwright.hostside import host_script
from rackwright.iptables import CLOSES, TAG, Rule, Table, at_top, in_place, parse_save, shadows, why_pending
from rackwright.ownership import RECORD
from rackwright.paths import ETC, FIREWALL_UNIT, STATE, UNITS, guard_unit
from rackwright.reading import decode, files, lines_of, pairs
from rackwright.render import render_own
from rackwright.settings.model import ENDPOINTS, EndpointSettings, HostSettings

SCRIPT = f"{ETC}/firewall"
UNIT = FIREWALL_UNIT
UNIT_FILE = f"{UNITS}/{UNIT}"
GUARD = "firewall"
OWNS = (Owned("file", SCRIPT), Owned("rule", f"{TAG}*"), Owned("unit", UNIT))

Rules = Mapping[str, tuple[Rule, ...]]
"""Rules by the command that keeps them: iptables, ip6tables."""


@dataclass(frozen=True)
class Place:
    """Where a release listens."""

    network: str
    address: str
    port: int

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Place:
        """From a release's spec.json. Raises KeyError when it does not say."""
        return Place(spec["network"], spec["address"], spec["port"])

    def put(self, own: EndpointSettings) -> EndpointSettings:
        """The same endpoint as it listens here: who may reach it is what the settings say."""
        return own.model_copy(update={"network": self.network, "bind": self.address, "port": self.port})


@dataclass(frozen=True)
class SeenFirewall:
    """The host's filter tables by command (`iptables-legacy` and the like: the backend that is not in use)."""

    tables: Mapping[str, Table]
    files: Mapping[str, str | None]
    backend: str = ""
    """What `iptables -V` says; empty without iptables."""
    ipv6: bool = False
    enabled: bool = False
    active: bool = False
    unconfirmed: bool = False
    """True while the guard of an earlier run waits to take its rules back."""
    current: Mapping[str, Place] = field(default_factory=dict)
    """Where each endpoint listens now, by name."""
    proven: Mapping[str, Place] = field(default_factory=dict)
    """Where each would listen if it went back to what was proven last."""

    def table(self, command: str) -> Table:
        """A table; an empty one when the command is not there."""
        return self.tables.get(command, Table())

    @property
    def elsewhere(self) -> dict[str, Table]:
        """Tables with rules in the backend that `iptables` does not show."""
        return {
            name: table for name, table in self.tables.items() if name not in FAMILIES and any(table.chains.values())
        }


@dataclass(frozen=True)
class WantedFirewall:
    """Our rules as they should be now, and the files that put them back later."""

    rules: Rules
    files: Mapping[str, str]
    seconds: int
    """Within which a new connection must confirm."""
    refusal: Refuse | None = None
    warnings: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    """Sentences when somebody made a unit of our unit's name by hand, and it is to be kept aside."""


# -- read


def read(_: HostSettings) -> str:
    """The filter tables, the script and the unit."""
    names = {"paths": f"{SCRIPT} {UNIT_FILE}", "unit": UNIT, "guard": f"{guard_unit(GUARD)}.timer"}
    return host_script("firewall_read", **names, home=f"{STATE}/endpoints")


def parse(output: str) -> SeenFirewall:
    """Parse the reading."""
    words = [line.split(" ", 2) for line in lines_of(output) if line.startswith("table ")]
    values = pairs(output)
    return SeenFirewall(
        {name: parse_save(decode(text)) for _, name, text in words},
        files(output),
        backend=values.get("backend", ""),
        ipv6=values.get("ipv6") == "yes",
        enabled=values["enabled"] == "enabled",
        active=values["active"] == "active",
        unconfirmed=values["guard"] == "active",
        current=_places(output, "current"),
        proven=_places(output, "proven"),
    )


def _places(output: str, pointer: str) -> dict[str, Place]:
    rows = [line.split(" ", 2) for line in lines_of(output) if line.startswith(f"{pointer} ")]
    specs = ((name, _spec(decode(text))) for _, name, text in rows)
    return {name: Place.of(spec) for name, spec in specs if spec}


def _spec(text: str) -> Mapping[str, Any]:
    """A spec.json, or nothing when it was spoilt by hand: the release is put back, and read again."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return readable(found) if isinstance(found, dict) else {}


# -- wanted


def wanted(settings: HostSettings, reading: HostReading) -> WantedFirewall:
    """Our rules for where this host's endpoints listen, and where they are to; a port that is left keeps its rules."""
    seen = reading[FIREWALL]
    return _wanted(settings, reading, listeners(settings, seen.current, seen.proven))


def wanted_as_served(settings: HostSettings, reading: HostReading) -> WantedFirewall:
    """Our rules for where the endpoints listen now: after a switch, or a way back, nothing else is open."""
    own, seen = settings.all_endpoints, reading[FIREWALL]
    there = [(name, seen.current[name].put(one)) for name, one in own.items() if name in seen.current]
    return _wanted(settings, reading, there)


def opening_changes(settings: HostSettings, reading: HostReading, targets: Mapping[str, Place]) -> list[Change]:
    """What opens the ports that endpoints go back to, by name, while they still listen where they do."""
    endpoints = listeners(settings, reading[FIREWALL].current, targets, wanted=False)
    others = {name: place for name, place in targets.items() if name not in settings.all_endpoints}
    # One of a name that the settings no longer have is reached by whom they let in today.
    today = next(iter(settings.all_endpoints.values()))
    endpoints = [*endpoints, *((name, place.put(today)) for name, place in others.items())]
    return changes(_wanted(settings, reading, endpoints), reading[FIREWALL])


def are_as_left(seen: SeenFirewall) -> bool:
    """Whether the kernel has the very rules, and the host the means to keep them, that the last deploy left."""
    left = kept_rules(seen.files.get(SCRIPT) or "")
    tables = {**{command: () for command, table in seen.tables.items() if table.ours}, **left}
    same = not any(
        why_pending(_with_chains(rules, seen.table(name)), seen.table(name)) for name, rules in tables.items()
    )
    return same and seen.enabled and seen.active and all(text is not None for text in seen.files.values())


def _with_chains(rules: Iterable[Rule], table: Table) -> list[Rule]:
    return [rule for rule in rules if table.has(rule.chain)]


def kept_rules(text: str) -> dict[str, list[Rule]]:
    """The rules that a script of ours puts back, by command."""
    blocks = re.findall(r"^replace (\S+) <<'RULES'.*\n((?:-I .*\n)*)RULES$", text, re.MULTILINE)
    return {
        command: [Rule(line.split(" ", 3)[1], line.split(" ", 3)[3]) for line in lines.splitlines()]
        for command, lines in blocks
    }


def is_ours(reading: HostReading) -> bool:
    """Whether a deploy of ours has set the rules of this host."""
    record: frozenset[Owned] = reading[RECORD]
    return record.issuperset(OWNS)


def listeners(settings: HostSettings, *places: Mapping[str, Place], wanted: bool = True) -> Listeners:
    """Each endpoint of the settings everywhere that it listens, or is to; every place once."""
    found = []
    for name, own in settings.all_endpoints.items():
        at = [own] if wanted else []
        at += [known[name].put(own) for known in places if name in known]
        found += [(name, one) for one in _each_once(at or [own])]
    return found


def _each_once(found: Iterable[EndpointSettings]) -> list[EndpointSettings]:
    return list({(one.network, one.address, one.port): one for one in reversed(list(found))}.values())[::-1]


def is_moving(settings: HostSettings, reading: HostReading) -> bool:
    """Whether an endpoint listens elsewhere than the settings ask for, or is no longer in them.

    Never where deploy.py does not call firewall(): nothing of it is read there.
    """
    if FIREWALL.name not in reading.seen:
        return False
    own, seen = settings.all_endpoints, reading[FIREWALL]
    return any(name not in own or _each_once([own[name], at.put(own[name])])[1:] for name, at in seen.current.items())


def moved(reading: HostReading, places: Mapping[str, Place]) -> dict[str, Place]:
    """Those places, by endpoint, where it does not listen now; none where deploy.py does not call firewall()."""
    if FIREWALL.name not in reading.seen:
        return {}
    current = reading[FIREWALL].current
    return {name: place for name, place in places.items() if current.get(name) != place}


def _wanted(settings: HostSettings, reading: HostReading, endpoints: Listeners) -> WantedFirewall:
    """The rules of listeners; those for chains that the host lacks wait in the script."""
    seen, docker = reading[FIREWALL], reading[DOCKER]
    bridge = str(_daemon_json(docker).get("bridge") or "docker0")
    left = [name for name in (*seen.current, *seen.proven) if name not in settings.all_endpoints]
    earlier = kept_rules(seen.files.get(SCRIPT) or "")
    rules = {
        command: _input_first(
            *endpoint_rules(endpoints, version, bridge, forwarding_chain(seen.table(command))),
            *_rules_of(left, earlier.get(command) or seen.table(command).ours),
        )
        for command, version in FAMILIES.items()
        if command == "iptables" or seen.ipv6
    }
    kept = {command: at_top(own) for command, own in rules.items()}
    record: frozenset[Owned] = reading[RECORD]
    foreign = tuple(foreigners(UNIT, seen.files.get(UNIT_FILE), False, record))
    return WantedFirewall(
        {command: _possible(own, seen.table(command), docker) for command, own in rules.items()},
        {SCRIPT: script(kept), UNIT_FILE: render_own(f"{UNIT}.j2", script=SCRIPT)},
        settings.firewall.confirm_timeout,
        _foreign_refusal(settings, foreign) or _refusal(settings, seen, docker),
        (*warnings(settings.all_endpoints), *_moving(settings, endpoints)),
        foreign,
    )


def _input_first(*rules: Rule) -> tuple[Rule, ...]:
    """Each rule once: two places of an endpoint may ask for the same one."""
    return tuple(sorted(dict.fromkeys(rules), key=lambda rule: rule.chain != INPUT))


def _rules_of(endpoints: Iterable[str], known: Iterable[Rule]) -> list[Rule]:
    """Rules of endpoints that the settings no longer have: as they are, as long as the endpoint is there."""
    tags = tuple(f"{TAG}{name}:" for name in endpoints)
    return [rule for rule in known if rule.comment.startswith(tags)] if tags else []


def _moving(settings: HostSettings, endpoints: Listeners) -> Iterator[str]:
    for name, one in endpoints:
        own = settings.all_endpoints.get(name)
        if own and own.port != one.port:
            yield f"endpoint {name} listens on port {one.port}, whose rules stay until it has switched to {own.port}"


def _foreign_refusal(settings: HostSettings, foreign: Sequence[str]) -> Refuse | None:
    return refusal(UNIT, foreign) if foreign and settings.releases.foreign_units != "aside" else None


def script(rules: Mapping[str, Iterable[str]]) -> str:
    """Shell text that replaces our rules, whatever they are now, by these insertions."""
    return render_own("firewall.j2", rules=rules, tag=TAG)


def _possible(rules: Iterable[Rule], table: Table, docker: SeenDocker) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if docker.daemon != "up" or table.has(rule.chain))


def _daemon_json(docker: SeenDocker) -> Mapping[str, Any]:
    try:
        return parse_daemon_json(docker.files.get(DAEMON_JSON))
    except BrokenDaemonJsonError:  # the docker concern refuses it, with the line
        return {}


def _refusal(settings: HostSettings, seen: SeenFirewall, docker: SeenDocker) -> Refuse | None:
    """Why `allow_from` cannot be kept on this host, if so."""
    names = filtered_in_docker_user(settings.all_endpoints)
    if not names or docker.daemon != "up" or _daemon_json(docker).get("iptables") is False:
        return None
    who = f"allow_from of endpoint {', '.join(names)} cannot be kept"
    if str((docker.info.get("FirewallBackend") or {}).get("Driver", "")).startswith("nftables"):
        return Refuse(f"{who}: {_NFTABLES}", final=settings.docker.daemon.get("firewall-backend") != "iptables")
    if jump_position(seen.table("iptables")) is not None:
        return None
    there = [name for name, table in seen.elsewhere.items() if table.has(DOCKER_USER)]
    return Refuse(f"{who}: {_OTHER_BACKEND.format(there[0]) if there else _NO_CHAIN}", final=False)


_NFTABLES = (
    "Docker's firewall backend here is nftables, which has no DOCKER-USER chain; next: set "
    "docker: {daemon: {firewall-backend: iptables}} in group_vars, or network: host for the endpoint"
)
_NO_CHAIN = (
    "Docker's chain DOCKER-USER is gone, or FORWARD no longer leads there; next: "
    "systemctl restart docker, and run again"
)
_OTHER_BACKEND = (
    "Docker keeps its chains in {0}, but `iptables` shows the other backend; next: "
    "update-alternatives --config iptables, systemctl restart docker, and run again"
)

# -- changes


def changes(asked: WantedFirewall, seen: SeenFirewall) -> list[Change]:
    """Replace our rules under a guard, then keep them for the next boot: a lock-out is never kept."""
    if asked.refusal is not None:
        return [Change("filter who reaches the endpoints", "something is in the way", (asked.refusal,))]
    aside = [kept_aside(UNIT, asked.foreign)] if asked.foreign else []
    return [*aside, *_replace(asked, seen), *_keep(asked, seen)]


def _replace(asked: WantedFirewall, seen: SeenFirewall) -> list[Change]:
    reasons = {command: why_pending(rules, seen.table(command)) for command, rules in asked.rules.items()}
    stale = {command: table for command, table in seen.tables.items() if command not in asked.rules and table.ours}
    reasons |= {command: f"{len(table.ours)} to remove" for command, table in stale.items()}
    if seen.unconfirmed:
        reasons = {
            command: reason or "an earlier run set them and never confirmed" for command, reason in reasons.items()
        }
    pending = {command: reason for command, reason in reasons.items() if reason}
    if not pending:
        return []
    after = {command: at_top(asked.rules.get(command, ())) for command in pending}
    guarded = Guarded(GUARD, script(after), _undo(pending, seen), asked.seconds)
    why = "; ".join(f"{command}: {reason}" for command, reason in pending.items())
    diff = "".join(_diff(command, seen.table(command).ours, asked.rules.get(command, ())) for command in pending)
    return [Change("set the firewall rules, and confirm over a new connection", why, (guarded,), OWNS, diff=diff)]


def _undo(commands: Iterable[str], seen: SeenFirewall) -> str:
    """Our rules back to where they stood; or, when foreign ones have gone meanwhile, back in front of the others."""
    exact = script({command: in_place(seen.table(command)) for command in commands})
    in_front = script({command: at_top(seen.table(command).ours) for command in commands})
    return f"(\n{exact}) || (\n{in_front})\n"


def _diff(command: str, before: Iterable[Rule], after: Iterable[Rule]) -> str:
    old, new = ([f"{rule.chain} {rule.text}" for rule in rules] for rules in (before, after))
    return "\n".join(
        [*difflib.unified_diff(old, new, f"{command}: ours now", f"{command}: ours then", lineterm=""), ""]
    )


def _keep(asked: WantedFirewall, seen: SeenFirewall) -> list[Change]:
    differing = [path for path, text in asked.files.items() if seen.files.get(path) != text]
    if not differing and seen.enabled and seen.active:
        return []
    steps: list[Step] = [WriteFile(path, asked.files[path]) for path in differing]
    reload = "systemctl daemon-reload && " if UNIT_FILE in differing else ""
    steps.append(Shell(f"{reload}systemctl enable --quiet {UNIT} && systemctl restart {UNIT}"))
    why = f"{', '.join(differing)} differ or are missing" if differing else f"{UNIT} is not enabled and active"
    return [Change("keep the firewall rules over reboots and restarts of Docker", why, tuple(steps), OWNS)]


def report(asked: WantedFirewall, seen: SeenFirewall) -> str:
    """Warnings that ask for no change: open ports, and rules that `iptables` does not show."""
    hidden = [
        f"{command} has rules of its own beside {seen.backend}: they decide, too; see {command}-save"
        for command in seen.elsewhere
    ]
    return "\n".join([*asked.warnings, *hidden, *_opened_before(asked, seen)])


def _opened_before(asked: WantedFirewall, seen: SeenFirewall) -> Iterator[str]:
    for command, rules in asked.rules.items():
        table = seen.table(command)
        ours = [rule for rule in rules if rule.chain == DOCKER_USER]
        for rule in table.rules("FORWARD")[: jump_position(table) or 0]:
            if rule.target not in CLOSES and shadows(rule, ours, table):
                yield (
                    f"{command}: in FORWARD a rule stands before Docker's, and may let in whom allow_from keeps out: "
                    f"{rule.text}; next: systemctl restart docker, which puts Docker's first"
                )


def jump_position(table: Table) -> int | None:
    """How many rules of FORWARD stand before the one that leads to DOCKER-USER; None when none does."""
    targets = [rule.target for rule in table.rules("FORWARD")]
    return targets.index(DOCKER_USER) if DOCKER_USER in targets and table.has(DOCKER_USER) else None


def remove_script() -> str:
    """Shell lines that take away our rules, their script and their unit, and nothing else, for teardown."""
    return host_script("firewall_remove", tag=TAG, paths=f"{SCRIPT} {UNIT_FILE}", unit=UNIT)


TAKES = frozenset({ENDPOINTS, "firewall", "docker", "releases"})
"""Sections of the settings that it is handed."""
FIREWALL: Concern[WantedFirewall, SeenFirewall] = Concern(
    "firewall", read, parse, wanted, changes, report, alone=True, takes=TAKES
)
FIREWALL_AS_SERVED: Concern[WantedFirewall, SeenFirewall] = Concern(
    "firewall", read, parse, wanted_as_served, changes, report, alone=True, takes=TAKES
)
"""The same, once a host has had its turn: what nothing listens on is closed again."""
