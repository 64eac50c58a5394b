"""Changes on a host since the last deploy that no deploy made, as sentences. Pure.

A release, its pointers, its unit and its files show on their own what the last deploy left. Elsewhere the ownership
record tells what was there; where neither can tell a host that moved from settings that changed, that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rackwright.concerns.catalog import managed
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.docker import DOCKER, lost_programs, not_taken, rejected_clients, waits_at_start
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.encodings import ENCODINGS
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.container_diff import reasons
from rackwright.concerns.endpoint.edits import hand_edits
from rackwright.concerns.endpoint.release.concern import RELEASE, Unresolved, binding_of, wanted_releases
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint, as_meant
from rackwright.concerns.firewall import FIREWALL, are_as_left, is_ours
from rackwright.concerns.gateway.concern import GATEWAY
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.image import IMAGE, digest_of
from rackwright.concerns.options import OPTIONS
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.retention import RETENTION
from rackwright.concerns.watch.concern import WATCH, as_left
from rackwright.inspect.endpoint_drift import damaged_files, gone, out_of_place
from rackwright.messages import RackwrightError
from rackwright.paths import BOOT_UNIT, unit_name
from rackwright.plan.change import Change, Owned, Refuse
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.record.masked_changes import mask, secrets_of
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.image_reference import repository_of

Verdict = Literal["moved", "unclear", "asked"]
"""moved: the host is not as the last deploy left it; asked: the settings changed since; unclear: one of the two."""
NAMED = frozenset({"package", "hold", "group_member", "image", "model", "apt_source"})
"""Kinds of belongings whose name says all that we did: one that is recorded and pending again has gone."""
_OWN = (RELEASE.name, ENDPOINT.name, RETENTION.name)


@dataclass(frozen=True)
class Drift:
    """One sentence about a host."""

    concern: str
    verdict: Verdict
    text: str


@dataclass(frozen=True)
class HostDrift:
    """Drift of one host."""

    host: str
    state: Literal["read", "new", "unreadable", "unreachable"]
    """`new`: nothing was ever deployed there, so there is nothing to compare with."""
    findings: tuple[Drift, ...] = ()
    error: str = ""

    @property
    def changed_by_itself(self) -> bool:
        """Return True if something is known to have moved on its own."""
        return any(finding.verdict == "moved" for finding in self.findings)

    @property
    def unclear(self) -> bool:
        """True when something may have moved, or the settings changed, and nothing is known to have moved."""
        return not self.changed_by_itself and any(finding.verdict == "unclear" for finding in self.findings)


def drift_of(name: str, settings: HostSettings, reading: HostReading, declared: Declared) -> HostDrift:
    """All findings of one host about what deploy.py calls, in the order of a deploy."""
    if not reading[RECORD]:
        return HostDrift(name, "new")
    secrets = tuple(secrets_of(settings))
    try:
        found = list(_around(settings, reading, declared))
        found += _endpoints(settings, reading) if ENDPOINT.name in declared else []
    except RackwrightError as error:
        return HostDrift(name, "unreadable", error=str(error))
    return HostDrift(name, "read", tuple(Drift(one.concern, one.verdict, mask(one.text, secrets)) for one in found))


# -- packages, files, rules, images, models


def _around(settings: HostSettings, reading: HostReading, declared: Declared) -> Iterator[Drift]:
    owned = reading[RECORD]
    if DOCKER.name in declared:
        docker = reading[DOCKER]
        texts = (*not_taken(docker), *lost_programs(docker), *waits_at_start(docker), *rejected_clients(docker))
        yield from (Drift(DOCKER.name, "moved", text) for text in texts)
    for concern in managed(declared.steps):
        if concern.name not in _OWN:
            for change in concern.pending(settings, reading):
                if concern.looks and not _refuses(change):
                    continue  # what a deploy would look at has not moved
                verdict = _verdict(concern.name, change, owned)
                if concern.name == FIREWALL.name and is_ours(reading):
                    verdict = "asked" if are_as_left(reading[FIREWALL], owned) else "moved"
                if concern.name == WATCH.name and owned.issuperset(change.owns):
                    verdict = "asked" if as_left(reading[WATCH]) else "moved"
                if concern.name == GATEWAY.name and owned.issuperset(change.owns):
                    verdict = "asked" if reading[GATEWAY].as_left else "moved"
                yield Drift(concern.name, verdict, _sentence(change))


def _verdict(concern: str, change: Change, owned: frozenset[Owned]) -> Verdict:
    if concern == PREFLIGHT.name or change.by_itself:
        return "moved"
    if concern == OPTIONS.name:
        return "asked"  # an image is asked once of each release: what is pending is a new one
    if not change.owns:
        return "unclear"
    if not owned.issuperset(change.owns):
        return "asked"
    telling = concern == ENCODINGS.name or all(entry.kind in NAMED for entry in change.owns)
    return "moved" if telling else "unclear"


def _refuses(change: Change) -> bool:
    return any(isinstance(step, Refuse) for step in change.steps)


def _sentence(change: Change) -> str:
    refusals = [step.message for step in change.steps if isinstance(step, Refuse) and step.final]
    return "\n".join(refusals) or f"a deploy would {change.sentence}"


# -- endpoints and their releases


def _endpoints(settings: HostSettings, reading: HostReading) -> Iterator[Drift]:
    observed = as_meant(reading[ENDPOINT], settings.releases.drop_ins)
    if not observed.docker:
        yield Drift("endpoint", "moved", "Docker does not answer, so nothing is known of the containers")
        return
    if Owned("unit", BOOT_UNIT) in reading[RECORD] and not observed.boot_enabled:
        yield Drift("endpoint", "moved", f"the endpoints no longer start at boot: {BOOT_UNIT} is not enabled")
    for path, mode in observed.open.items():
        text = f"the mode and owner of {path} are {mode}, so others than root may write to it; a deploy closes it"
        yield Drift("endpoint", "moved", text)
    names, record = settings.releases.drop_ins, reading[RECORD]
    yield from (Drift("endpoint", "moved", text) for text in hand_edits(observed.edits, names, record))
    wanted, rests = wanted_releases(settings, reading), reading[DRAINED].drained is not None
    for name, endpoint in observed.endpoints.items():
        if endpoint.current is None and Owned("unit", unit_name(name)) not in reading[RECORD]:
            yield Drift("endpoint", "asked", f"endpoint {name} is new in the settings")
            continue
        whole = {hash_: text is not None for hash_, text in reading[RELEASE].sums.get(name, {}).items()}
        yield from (Drift("release", "moved", f"endpoint {name}: {text}") for text in damaged_files(endpoint, whole))
        yield from (Drift("endpoint", "moved", f"endpoint {name}: {text}") for text in out_of_place(endpoint, rests))
        if name not in wanted:
            yield Drift("endpoint", "asked", f"endpoint {name} is no longer in the settings")
        else:
            yield from _against(name, wanted[name], endpoint, settings, reading)


def _against(
    name: str, release: Release | Unresolved, endpoint: SeenEndpoint, settings: HostSettings, reading: HostReading
) -> Iterator[Drift]:
    """Compare what is wanted now with the release that the last deploy left."""
    unread = bool(reading[GPUS].error)  # nvidia-smi does not answer, as preflight says: none is known to be gone
    lost = set(endpoint.binding.gpus if endpoint.binding and not unread else ()) - {
        gpu.uuid for gpu in reading[GPUS].gpus
    }
    if unread and isinstance(release, Unresolved):
        return
    if lost:
        yield Drift("gpus", "moved", f"endpoint {name}: {gone(lost)}")
    if isinstance(release, Unresolved):
        yield _not_known(name, settings.all_endpoints[name], endpoint, release, reading)
    elif endpoint.spec.get("serving") != release.spec.serving_hash:
        why = reasons(endpoint.spec, release.spec.as_json()) or "another one"
        yield Drift("endpoint", "asked", f"endpoint {name}: the settings ask for release {release.hash}: {why}")
    elif not lost and endpoint.binding != binding_of(settings.all_endpoints[name], reading, settings):
        yield Drift("endpoint", "asked" if endpoint.binding else "moved", f"endpoint {name}: {_binding_text(endpoint)}")


def _not_known(
    name: str, wanted: EndpointSettings, endpoint: SeenEndpoint, release: Unresolved, reading: HostReading
) -> Drift:
    """Return a release's parts that the host lacks: they have gone, or the settings ask for something new."""
    missing = ", ".join(release.missing)
    sources = {source.repository for source in (wanted.model, wanted.draft) if source}
    same = str(endpoint.spec.get("image", "")).partition("@")[0] == repository_of(wanted.image)
    if not same or not sources <= set(endpoint.spec.get("models", {})):
        return Drift(
            "release", "asked", f"endpoint {name}: the settings ask for what is not on the host yet: {missing}"
        )
    images, served = reading[IMAGE], str(endpoint.spec.get("image", "")).partition("@")[2]
    if digest_of(wanted, reading):
        return Drift("release", "moved", f"endpoint {name}: no longer known on the host: {missing}")
    if served in images.pins.values():
        return Drift("release", "asked", f"endpoint {name}: the settings ask for another image: {wanted.image}")
    # A release names its image by digest alone, so another tag of it looks like one whose record has gone.
    return Drift("release", "unclear", f"endpoint {name}: no longer known on the host: {missing}")


def _binding_text(endpoint: SeenEndpoint) -> str:
    return "the settings ask for other GPUs" if endpoint.binding else "its binding is gone, or was changed by hand"
