"""The steps that a site's deploy.py declares for a host: the managed concerns, and the site's own operations. Pure.

deploy.py decides which concerns exist (DECISIONS 41): a step that it does not call is neither planned, changed nor
judged, whatever the settings say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from rackwright.paths import (
    ACT_UNIT,
    CERTIFICATE_TIMER,
    CERTIFICATE_UNIT,
    ETC,
    FIREWALL_UNIT,
    GATEWAY_UNIT,
    KEEPALIVED_UNIT,
    NOTIFY_UNIT,
    STATE,
    WATCH_UNITS,
    WORD_UNITS,
)
from rackwright.plan.change import Owned
from rackwright.settings.host_settings import HostSettings

NEEDS: Mapping[str, tuple[str, ...]] = {
    "models": ("image",),
    "release": ("image",),
    "options": ("release",),
    "dockerd": ("docker", "endpoint"),
    "endpoint": ("release",),
    "close_direct": ("firewall",),
}
"""Steps that a step requires: a model is fetched inside the serving image, a release names both, ..."""

FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "docker": ("preflight",),
    "driver": ("preflight", "docker"),
    "firewall": ("preflight", "docker"),
    "registry": ("preflight", "docker"),
    "image": ("preflight", "docker", "registry"),
    "encodings": ("preflight", "docker"),
    "models": ("preflight", "image"),
    "release": ("image", "encodings", "models"),
    "options": ("release",),
    "dockerd": ("docker", "release", "options"),
    "endpoint": ("firewall", "release", "options", "dockerd"),
    "watch": ("endpoint",),
    "gateway": ("endpoint", "watch"),
    "close_direct": ("firewall", "endpoint", "gateway"),
    "retention": ("endpoint",),
    "converged": (
        *("docker", "driver", "firewall", "registry", "image", "models", "release", "endpoint"),
        *("watch", "gateway", "close_direct", "retention"),
    ),
}
"""Steps that must come before a step where both are called."""

_FIREWALL_FILES = (("file", f"{ETC}/*"), ("file", "*/rackwright-firewall.conf"))
_RUNNER = tuple(("unit", name) for name in WATCH_UNITS)
"""The timer that runs the checks of a host: a part of two steps."""
_SHARED = {
    **dict.fromkeys(_RUNNER, ("firewall", "watch")),
    **{("package", name): ("docker", "gateway") for name in ("curl", "ca-certificates")},
}
"""Entries that several steps make."""
_WATCH = (
    *(("file", f"{ETC}/{name}") for name in ("watch*", "word*", "act*", "notify*")),
    *(("unit", name) for name in (*WORD_UNITS, ACT_UNIT, NOTIFY_UNIT)),
)
MADE_BY: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gateway": (
        *(("package", name) for name in ("haproxy", "keepalived", "uacme", "openssl")),
        *(("unit", name) for name in (GATEWAY_UNIT, KEEPALIVED_UNIT, CERTIFICATE_UNIT, CERTIFICATE_TIMER)),
        *(("file", f"{ETC}/{folder}/*") for folder in ("gateway", "keepalived", "certificate")),
    ),
    "watch": (*_WATCH, *_RUNNER),
    "firewall": (("rule", "*"), ("unit", FIREWALL_UNIT), *_RUNNER, *_FIREWALL_FILES),
    "registry": (("login", "*"),),
    "image": (("image", "*"),),
    "encodings": (("file", "*.tiktoken"),),
    "models": (("model", "*"),),
    "driver": (("apt_source", "*/rackwright-driver.*"), ("file", "*/rackwright-driver.cfg")),
    "docker": tuple((kind, "*") for kind in ("package", "hold", "group_member", "daemon_key", "apt_source", "file")),
    "endpoint": (("unit", "*"), ("directory", f"{STATE}/endpoints/*")),
}
"""Entries of the ownership record that a step makes: kind, and name as a pattern."""


@dataclass(frozen=True)
class Declared:
    """One host's steps in the order of deploy.py, and the names of the site's own operations between them."""

    steps: tuple[str, ...]
    others: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the calls, as settings: they override the files', and `--data` overrides them."""
    implied: Mapping[str, str] = field(default_factory=dict)
    """Steps that deploy.py does not call, each with the step that called it instead."""
    silent: frozenset[str] = frozenset()
    """Steps that deploy.py calls, and that have no meaning on this host."""

    def __contains__(self, step: object) -> bool:
        return step in self.steps


GATEWAY_STEPS = frozenset({"preflight", "gateway", "converged"})
"""Steps that count on a host that is a gateway and serves nothing itself."""


def counting(declared: Declared, settings: HostSettings) -> Declared:
    """Return the steps that count on a host: gateway() on gateways alone, and few others on one that serves nothing."""
    silent = frozenset(step for step in declared.steps if not _counts(step, settings))
    steps = tuple(step for step in declared.steps if step not in silent)
    return replace(declared, steps=steps, silent=silent) if silent else declared


def _counts(step: str, settings: HostSettings) -> bool:
    if settings.is_gateway_alone:
        return step in GATEWAY_STEPS
    by_setting = {"gateway": settings.is_gateway, "close_direct": settings.direct_is_closed}
    return by_setting.get(step, True)


class StepProblem(NamedTuple):
    """A problem with the steps of a host."""

    code: str
    text: str


def problems_of(declared: Declared, settings: HostSettings) -> list[StepProblem]:
    """Return the problems of a host's steps; empty when they can be carried out."""
    needs = [*_missing(declared), *_unfetched(declared, settings)]
    return [*_twice(declared), *needs, *_out_of_order(declared), *_unserved(declared, settings)]


def _twice(declared: Declared) -> Iterator[StepProblem]:
    for step in dict.fromkeys(declared.steps):
        if declared.steps.count(step) > 1 and step in declared.implied:
            caller = declared.implied[step]
            yield _wrong_order(caller, step)
        elif declared.steps.count(step) > 1:
            text = f"{step}() is called twice for one host; next: leave one of the calls out"
            yield StepProblem("RW2003", text)


def _wrong_order(step: str, earlier: str) -> StepProblem:
    return StepProblem("RW2004", f"{step}() stands before {earlier}(); next: move {earlier}() above {step}()")


def _missing(declared: Declared) -> Iterator[StepProblem]:
    for step in dict.fromkeys(declared.steps):
        for need in NEEDS.get(step, ()):
            if need not in declared:
                text = f"{step}() needs {need}(), which is not called; next: call {need}() or leave {step}() out"
                yield StepProblem("RW2005", text)


def _unfetched(declared: Declared, settings: HostSettings) -> Iterator[StepProblem]:
    """Yield a problem for each model that no step fetches and whose path on the host is not set."""
    if "models" in declared or not {"release", "endpoint"} & {*declared.steps}:
        return
    sources = [
        source for endpoint in settings.all_endpoints.values() for source in (endpoint.model, endpoint.draft) if source
    ]
    if not all(source.path for source in sources):
        step = "endpoint" if "endpoint" in declared else "release"
        text = f"{step}() needs models(), or model.path; next: call models(), or say where the files are on the host"
        yield StepProblem("RW2006", text)


def _out_of_order(declared: Declared) -> Iterator[StepProblem]:
    position = {step: number for number, step in reversed(list(enumerate(declared.steps)))}
    for step, number in position.items():
        for earlier in FOLLOWS.get(step, ()):
            if position.get(earlier, -1) > number:
                yield _wrong_order(step, earlier)


def _unserved(declared: Declared, settings: HostSettings) -> Iterator[StepProblem]:
    """Yield a problem for each setting that no step acts on: no operator must believe that an open port is closed."""
    if "endpoint" not in declared:
        return
    if not settings.all_endpoints:
        text = (
            "endpoint() is called for a host without a model: no file in group_vars for its groups, or in host_vars, "
            "sets one; next: correct the group's name in the inventory, or set `model:`"
        )
        yield StepProblem("RW2007", text)
    if "firewall" not in declared and any(endpoint.is_closed_by_hand for endpoint in settings.all_endpoints.values()):
        text = "allow_from is set and firewall() is not called; next: call firewall(), or take allow_from out"
        yield StepProblem("RW2008", text)
    if settings.direct_is_closed and "close_direct" not in declared:
        text = "gateway.close_direct is set and close_direct() is not called; next: call close_direct() below gateway()"
        yield StepProblem("RW2009", text)


def makers_of(one: Owned) -> list[str]:
    """Return the steps that make an entry of the ownership record: the first one, and others that share the entry."""
    matching = [
        step
        for step, patterns in MADE_BY.items()
        if any(one.kind == kind and fnmatchcase(one.name, pattern) for kind, pattern in patterns)
    ]
    return [*_SHARED.get((one.kind, one.name), matching[:1])]


def left_of(declared: Declared, record: Iterable[Owned]) -> dict[str, list[Owned]]:
    """Return the entries that earlier runs made for steps that are no longer called, by step."""
    found: dict[str, list[Owned]] = {}
    for one in sorted(record):
        makers = makers_of(one)
        if makers and not any(step in declared for step in makers):
            found.setdefault(makers[0], []).append(one)
    return found


def left_behind(declared: Declared, record: Iterable[Owned]) -> list[str]:
    """Return the entries of `left_of` as sentences."""
    return [
        f"left behind: {', '.join(dict.fromkeys(one.kind for one in entries))} of {step}(), which is no longer called"
        for step, entries in left_of(declared, record).items()
    ]
