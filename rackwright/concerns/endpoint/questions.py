"""Questions for an endpoint: in its basic proof, in the full gate, and for a release that was proven earlier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.container import SGLANG_SERVER, served_name, url_of
from rackwright.concerns.endpoint.full_gate import compared_questions, full_questions
from rackwright.concerns.endpoint.proof.asking import confined
from rackwright.concerns.endpoint.proof.chat import WAIT_FOR_COMPILER, asks_for_key, chat, model_name, version
from rackwright.concerns.endpoint.proof.container_rows import gpus_inside, release_runs, threads
from rackwright.concerns.endpoint.proof.full import gpu_counters
from rackwright.concerns.endpoint.proof.gpu_errors import gpu_errors
from rackwright.concerns.endpoint.proof.proof_row import Question
from rackwright.concerns.endpoint.proof.transport import transport
from rackwright.concerns.endpoint.quality.long_prompt import UNKNOWN, long_prompt
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.proving import Tried
from rackwright.paths import container_name, endpoint_dir, unit_name
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.version import bare


def tried_of(name: str, release: str, spec: Mapping[str, Any], binding: Binding) -> Tried:
    """Return a release that was proven earlier, to be asked again; without its spec.json it can only be started."""
    if not spec:
        return Tried(release, binding, "", ())
    return Tried(release, binding, spec["image"], basic_questions(name, spec, binding))


def questions(release: Release, binding: Binding, settings: EndpointSettings) -> tuple[Question, ...]:
    """Return the basic proof of an endpoint: identity, GPUs, and a chat answer that is read and checked."""
    rows = basic_questions(release.spec.name, release.facts, binding)
    home = endpoint_dir(release.spec.name)
    last = (threads(container_name(release.spec.name), release.spec.pids_limit), gpu_errors(home))
    between = _between(release.spec.name, settings)
    shown = of_container(release.spec.name, _version(release.spec.health_url, settings))
    return (*rows[:-1], *shown, rows[-1], *between, *last)


def _between(name: str, settings: EndpointSettings) -> tuple[Question, ...]:
    """Return the further questions for an endpoint of several hosts."""
    if settings.size == 1:
        return ()
    return (transport(unit_name(name), container_name(name), settings.group_transport),)


def of_container(name: str, rows: Iterable[Question], keyed: bool = False) -> tuple[Question, ...]:
    """Return rows that are asked of the endpoint's own container. keyed: True where they carry its key."""
    return tuple(confined(name, row, keyed) for row in rows)


def is_keyed(spec: Mapping[str, Any]) -> bool:
    """Return True if a spec.json says that the endpoint asks for a key."""
    return bool(spec.get("keyed"))


def questions_after(release: Release, settings: EndpointSettings) -> tuple[Question, ...]:
    """Return the control machine's questions once the basic proof has passed."""
    if settings.gate.level == "basic":
        return ()
    rows = full_questions(release.spec.health_url, served_name(settings), settings)
    return (
        *of_container(release.spec.name, rows, is_keyed(release.facts)),
        gpu_errors(endpoint_dir(release.spec.name)),
    )


def questions_to_canary(release: Release, settings: EndpointSettings) -> tuple[Question, ...]:
    """Return the rows that a canary is asked beside the questions of the settings' file; none without such a file."""
    gate, longest = settings.gate, plan_of(settings).number("sequence", UNKNOWN)
    if gate.level == "basic" or not gate.questions:
        return ()
    row = long_prompt(release.spec.health_url, served_name(settings), longest, gate.questions_limit)
    return of_container(release.spec.name, (row,), is_keyed(release.facts))


def questions_before(settings: EndpointSettings, reading: SeenEndpoint) -> tuple[Question, ...]:
    """Return what the full gate compares: asked of what serves now; of a host that does not serve, its GPUs alone."""
    if settings.gate.level == "basic":
        return ()
    if not reading.serving or not reading.spec:
        return (gpu_counters(),)
    base = url_of(reading.spec["address"], reading.spec["port"], reading.spec.get("network", "host"))
    rows = compared_questions(base, reading.spec["served_name"], settings, reading.spec)
    return of_container(reading.spec["name"], rows, is_keyed(reading.spec))


def basic_questions(name: str, spec: Mapping[str, Any], binding: Binding) -> tuple[Question, ...]:
    """Return the questions for any release, from its spec.json alone, so that an old one can be asked as well."""
    base = url_of(spec["address"], spec["port"], spec.get("network", "host"))
    container, model = container_name(name), spec["served_name"]
    key = (asks_for_key(base),) if is_keyed(spec) else ()
    return (
        release_runs(container, spec["hash"], binding.hash),
        gpus_inside(container, len(binding.gpus)),
        *of_container(name, key),
        *of_container(name, (model_name(base, model), _chat(base, spec)), is_keyed(spec)),
    )


def _chat(base: str, spec: Mapping[str, Any]) -> Question:
    """SGLang compiles kernels at its first request, while its /health answers 200."""
    model = spec["served_name"]
    return chat(base, model, WAIT_FOR_COMPILER) if SGLANG_SERVER in spec.get("argv", ()) else chat(base, model)


def _version(base: str, settings: EndpointSettings) -> list[Question]:
    """SGLang has no /version."""
    return [] if settings.engine_kind == "sglang" else [version(base, bare(settings.version))]
