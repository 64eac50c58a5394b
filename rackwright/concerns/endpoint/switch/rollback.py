"""Rolling back by hand, or after a rollout that failed: to a proven release that is still on the host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rackwright.concerns.endpoint.binding import Binding, parse_binding
from rackwright.concerns.endpoint.formats import foreign, format_of, readable, refusal
from rackwright.concerns.endpoint.group.scripts import ask_members_script
from rackwright.concerns.endpoint.questions import tried_of
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.job import in_turn, keep_log_script
from rackwright.concerns.endpoint.switch.replacement_change import leaving_part
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.concerns.endpoint.switch.transaction import Part, endpoints_switch, switch_job
from rackwright.hostside import durable_script, host_script
from rackwright.paths import STATE, endpoint_dir, unit_name
from rackwright.plan.change import Change, Owned, Refuse
from rackwright.plan.reading import decode
from rackwright.settings.host_settings import HostSettings

LAST = "last"
"""Asks for the proven release before the present one."""


def releases_asked(wanted: Mapping[str, Mapping[str, str]], host: str, endpoints: list[str]) -> dict[str, str]:
    """Release by endpoint for a host. wanted: the same by host; `*` stands for any host or endpoint."""
    of_host = wanted.get(host, wanted.get("*", {}))
    return {name: of_host[name if name in of_host else "*"] for name in endpoints if name in of_host or "*" in of_host}


@dataclass(frozen=True)
class WayBack:
    """A release that an endpoint could roll back to."""

    history: tuple[str, ...] = ()
    """Proven releases, the present one last."""
    specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    """Needs of a release that are no longer on the host."""
    replaced: frozenset[str] = frozenset()
    """Endpoints that serve in its place; empty for one that serves itself."""
    binding: Binding | None = None
    """With which it was proven last."""
    docker: bool = True
    """False where Docker did not answer: nothing is known of the images."""


def read_script() -> str:
    """List the retained releases of every endpoint; changes nothing."""
    return host_script("kept_releases", home=f"{STATE}/endpoints")


def parse_kept(lines: list[str]) -> dict[str, WayBack]:
    """Parse the listing. Raises ValueError when it is malformed."""
    history: dict[str, tuple[str, ...]] = {}
    specs: dict[str, dict[str, Any]] = {}
    gone: dict[str, dict[str, str]] = {}
    replaced: dict[str, frozenset[str]] = {}
    bindings: dict[str, Binding | None] = {}
    docker_known = "docker unknown" not in lines
    for row in lines:
        kind, endpoint, *words = row.split()
        if kind == "history":
            history[endpoint] = tuple(words)
        elif kind == "replaced":
            replaced[endpoint] = frozenset(words)
        elif kind == "binding":
            bindings[endpoint] = parse_binding(decode(words[0]))
        elif kind == "release":
            specs.setdefault(endpoint, {})[words[0]] = json.loads(decode(words[1]))
            if words[2:] != ["ok"]:
                gone.setdefault(endpoint, {})[words[0]] = " ".join(words[2:])
    return {
        name: WayBack(
            history[name],
            specs.get(name, {}),
            gone.get(name, {}),
            replaced.get(name, frozenset()),
            bindings.get(name),
            docker_known,
        )
        for name in history
    }


def target_of(reading: SeenEndpoint, way: WayBack, wanted: str) -> str | None:
    """Return the release to roll back to, if any."""
    if wanted != LAST:
        return wanted if wanted in way.specs else None
    earlier = [release for release in way.history if release != reading.proven and release in way.specs]
    return earlier[-1] if earlier else None


def targets_of(
    reading: Mapping[str, SeenEndpoint], ways: Mapping[str, WayBack], wanted: Mapping[str, str]
) -> dict[str, str]:
    """Return the release that each endpoint rolls back to, where it has one."""
    found = {
        name: target_of(reading.get(name, SeenEndpoint()), ways.get(name, WayBack()), release)
        for name, release in wanted.items()
    }
    return {name: target for name, target in found.items() if target is not None}


def back_changes(
    settings: HostSettings,
    reading: Mapping[str, SeenEndpoint],
    ways: Mapping[str, WayBack],
    wanted: Mapping[str, str],
    bindings: Mapping[str, Binding],
) -> list[Change]:
    """Return the changes that bring a host's endpoints back.

    wanted: release by endpoint, or LAST; endpoints that are not named stay as they are. bindings: today's, by endpoint:
    GPUs that were swapped since block no way back. An endpoint that others took the place of comes back in theirs.
    """
    replaced = {name: ways[name] for name in _replaced(reading, ways, wanted)}
    found = [_in_place_of(name, settings, reading, way) for name, way in replaced.items()]
    served = {successor for way in replaced.values() for successor in way.replaced}
    for name, release in wanted.items():
        if name in replaced or name in served:
            continue
        now = reading.get(name, SeenEndpoint())
        target = target_of(now, ways.get(name, WayBack()), release)
        endpoint = settings.all_endpoints.get(name)
        if settings.group is not None and not settings.group.is_head:
            continue  # it follows its head
        if target is None or endpoint is None:
            found.append(_refused(name, release, ways.get(name, WayBack())))
        elif foreign(other := format_of(ways[name].specs[target])):
            found.append(_not_done(name, f"back to release {target}", refusal(name, other)))
        elif not bindings[name].gpus:
            found.append(_not_done(name, f"back to release {target}", f"endpoint {name}: {_NO_GPUS}"))
        elif refused := _lacking(name, target, ways[name]):
            found.append(refused)
        elif ways[name].specs[target].get("keyed") and not _bound(bindings[name], ways[name]).key:
            found.append(_not_done(name, f"back to release {target}", f"endpoint {name}: release {target} {_NO_KEY}"))
        elif not (now.running_hash == now.current == now.proven == target and now.serving):
            bound = _bound(bindings[name], ways[name])
            found.append(_back(name, target, settings, now, ways[name], bound))
    return found


def _bound(today: Binding, way: WayBack) -> Binding:
    """Return today's GPUs with the key that is on the host: one that is only in the settings does not count."""
    return replace(today, key=way.binding.key) if way.binding else today


def _replaced(
    reading: Mapping[str, SeenEndpoint], ways: Mapping[str, WayBack], wanted: Mapping[str, str]
) -> Iterator[str]:
    """Return endpoints that come back: asked for by name, or since their successors have nothing to roll back to."""
    for name, way in ways.items():
        if not way.replaced or not all(one in reading and reading[one].serving for one in way.replaced):
            continue
        earlier = (target_of(reading[one], ways.get(one, WayBack()), LAST) for one in way.replaced)
        by_successor = all(wanted.get(one) == LAST for one in way.replaced) and not any(earlier)
        if way.history and (by_successor or wanted.get(name) in (LAST, way.history[-1])):
            yield name


def _in_place_of(name: str, settings: HostSettings, reading: Mapping[str, SeenEndpoint], way: WayBack) -> Change:
    """Return the switch by which an endpoint returns; it is drained and asked as its successors are."""
    target, others = way.history[-1], sorted(way.replaced)
    what = f"replace endpoint {', '.join(others)} by endpoint {name} at release {target}"
    spec = way.specs.get(target, {})
    endpoints = settings.all_endpoints
    endpoint = next((endpoints[one] for one in (name, *others) if one in endpoints), next(iter(endpoints.values())))
    if way.binding is None or not readable(spec):
        return Change(what, "asked for", (Refuse(f"endpoint {name}: {_UNKNOWN}", code="RW2407"),))
    if refused := _lacking(name, target, way):
        return refused
    placed = {"network": spec["network"], "bind": spec["address"], "port": spec["port"]}
    basic = {"gate": endpoint.gate.model_copy(update={"level": "basic"})}
    tried, bridge = tried_of(name, target, spec, way.binding), spec["network"] == "bridge"
    coming = Part(name, endpoint.model_copy(update={**placed, **basic}), tried, bridge=bridge)
    leaving = [leaving_part(one, endpoint, reading[one]) for one in others]
    step = Proved(
        endpoint=name,
        release=target,
        job=switch_job(endpoints_switch([coming, *leaving], settings.releases.keep)),
        serving=True,
        takes_over=tuple(others),
        listens=_place(spec),
    )
    units = tuple(Owned("unit", unit_name(one)) for one in others)
    return Change(what, "asked for", (step,), (Owned("unit", unit_name(name)),), units, endpoint=name)


_DOCKER_DOWN = (
    "Docker does not answer, so it is unknown whether its image is still there; next, on the host: systemctl restart "
    "docker; journalctl -u docker --lines 50"
)
_UNKNOWN = (
    "not enough is known of it to start it again; next: put it into the settings, and pyinfra INVENTORY deploy.py"
)
_NO_KEY = (
    "asks its clients for a key, and the host no longer has one; next: write api_key, and pyinfra INVENTORY deploy.py"
)
_NO_GPUS = "not all of its GPUs are on the host, so it is left as it is; next, on the host: nvidia-smi -L"


def _refused(name: str, release: str, way: WayBack) -> Change:
    wanted = "an earlier proven release" if release == LAST else f"release {release}"
    retained = ", ".join(way.specs) or "none"
    text = f"endpoint {name}: {wanted} is not on the host (it keeps: {retained}); next: pyinfra INVENTORY deploy.py"
    return _not_done(name, "back", text)


def _lacking(name: str, target: str, way: WayBack) -> Change | None:
    """Return why a retained release cannot start again; None when all that it needs is present."""
    if missing := way.gone.get(target):
        text = f"release {target} would need what is gone: {missing}; next: pyinfra INVENTORY deploy.py"
    elif not way.docker:
        text = _DOCKER_DOWN
    else:
        return None
    return _not_done(name, f"back to release {target}", f"endpoint {name}: {text}")


def _not_done(name: str, where: str, text: str) -> Change:
    return Change(f"put endpoint {name} {where}", "asked for", (Refuse(text, code="RW2406"),))


def _back(name: str, target: str, settings: HostSettings, now: SeenEndpoint, way: WayBack, binding: Binding) -> Change:
    part = _part_back(name, target, settings, now, way, binding)
    step = Proved(
        endpoint=name,
        release=target,
        job=switch_job(endpoints_switch([part], settings.releases.keep)),
        serving=now.serving,
        listens=_place(way.specs[target]),
    )
    what = f"put endpoint {name} back to release {target}"
    return Change(what, f"it runs {now.running_hash or 'nothing'}", (step,), endpoint=name)


def _part_back(
    name: str, target: str, settings: HostSettings, now: SeenEndpoint, way: WayBack, binding: Binding
) -> Part:
    """Return the part of an endpoint that rolls back; what came after its release is pruned."""
    endpoint, specs = settings.all_endpoints[name], way.specs
    present = now.proven if now.proven in specs and now.proven != target else None
    ask = ask_members_script(name, target, settings.group.hosts) if settings.group else ""
    return Part(
        name,
        endpoint.model_copy(update={"gate": endpoint.gate.model_copy(update={"level": "basic"})}),
        tried_of(name, target, specs[target], binding),
        tried_of(name, present, specs[present], binding) if present else None,
        now.spec.get("port"),
        now.proven,
        prepare=in_turn([ask, keep_log_script(name, now.current or "unknown")]),
        first=durable_script("forget_later", home=endpoint_dir(name), release_hash=target),
        bridge="bridge" in (specs[target].get("network"), now.spec.get("network")),
    )


def _place(spec: Mapping[str, Any]) -> tuple[str, str, int] | None:
    return (spec["network"], spec["address"], spec["port"]) if readable(spec) else None
