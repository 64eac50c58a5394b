"""The image decides: a release's options are built inside its own image before anything is switched.

The answer is stored beside the releases, by request: accepted or unchecked options are not checked again, and
refused ones are refused again without running. A proven release needs no check (DECISIONS 27).
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.full_gate import drafting_of
from rackwright.concerns.endpoint.group.words import first_member_words
from rackwright.concerns.endpoint.release.concern import TAKES as RELEASE_TAKES
from rackwright.concerns.endpoint.release.concern import binding_of, wanted_releases
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.models import MODELS, SeenModels
from rackwright.engines.host import NOT_ASKED
from rackwright.engines.launch import launch_port
from rackwright.hostside import helper_script, host_program, host_script
from rackwright.paths import (
    HELPER_LABEL,
    RELEASE_MOUNT,
    SCRATCH_MOUNT,
    STATE,
    endpoint_dir,
    endpoint_job,
    helper_container,
    keyed_dir,
)
from rackwright.plan.change import Change, Job, Refuse
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import decode, lines_of
from rackwright.record.ending import FIX
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_engines.fit.draft_config import Misfit, misfits
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.options.commandline import parsed

LIMIT = 120
"""Seconds that an image may take to answer; heavy imports included."""
OURS = re.compile(r"^from (?:__future__|rackwright\.\S+) import .*\n", re.MULTILINE)
"""Imports that are invalid once a program is one file with its shared code."""
KEPT = 20
"""Number of answers that stay on the host, the newest."""


@dataclass(frozen=True)
class OptionRefusal:
    """An engine's refusal: the key in its message, if any, and its reason."""

    key: str
    reason: str


@dataclass(frozen=True)
class ImageVerdict:
    """An image's answer about a release, or why it could not be asked."""

    checked: bool
    refused: tuple[OptionRefusal, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class WantedOptions:
    """A release whose options its image should check, and why the check is skipped, if it is."""

    release: Release
    engine_kind: str
    arguments: tuple[str, ...] = ()
    """Arguments that the settings add to the server's command line."""
    spared: bool = False
    """True when the release is proven, or when a Spark serves and has no memory for a second engine."""
    crowded: bool = False
    """True in the second case alone."""
    proven: bool = False
    """True in the first case."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the endpoint's GPUs on this host."""
    launched: bool = False
    """True when mpirun starts it on several hosts."""
    misfits: tuple[Misfit, ...] = ()
    """Mismatches between the config.json of its draft and of its model, both on the host."""

    @property
    def key(self) -> tuple[str, str]:
        """The endpoint, and the request to its image: the release, and the number of GPUs."""
        return self.release.spec.name, f"{self.release.spec.serving_hash}-{len(self.gpus)}"


SeenOptions = Mapping[tuple[str, str], ImageVerdict]
"""Verdicts by endpoint and by the request to its image."""


def marker(wanted: WantedOptions) -> str:
    """Return the file on the host with the image's answer."""
    endpoint, digest = wanted.key
    return f"{endpoint_dir(endpoint)}/checked/{digest}"


def read(_: HostSettings) -> str:
    """Print every stored answer."""
    return f"""\
for f in {STATE}/endpoints/*/checked/*; do
  [ ! -f "$f" ] || carry "$f" "$f"
done
exit 0"""


def parse(output: str) -> dict[tuple[str, str], ImageVerdict]:
    """Parse the answers; a damaged one counts as missing, and is requested again."""
    found: dict[tuple[str, str], ImageVerdict] = {}
    for row in lines_of(output):
        path, _, text = row.partition(" ")
        verdict = _verdict(decode(text))
        if verdict:
            endpoint, digest = path.split("/")[-3::2]
            found[endpoint, digest] = verdict
    return found


def _verdict(text: str) -> ImageVerdict | None:
    try:
        answer = json.loads(text)
        refused = tuple(OptionRefusal(str(row["key"]), str(row["reason"])) for row in answer["refused"])
        return ImageVerdict(bool(answer["checked"]), refused, str(answer["why"]))
    except (ValueError, KeyError, TypeError):
        return None


def wanted(settings: HostSettings, reading: HostReading) -> tuple[WantedOptions, ...]:
    """Return every release that is resolved by now; the concern of releases refuses the others."""
    return tuple(
        _wanted(release, settings.all_endpoints[name], settings, reading)
        for name, release in wanted_releases(settings, reading).items()
        if isinstance(release, Release)
    )


def _wanted(
    release: Release, endpoint: EndpointSettings, settings: HostSettings, reading: HostReading
) -> WantedOptions:
    endpoints = reading[ENDPOINT].endpoints
    on_host = endpoints.get(release.spec.name)
    proven = on_host is not None and on_host.proven_spec.get("serving") == release.spec.serving_hash
    crowded = settings.hardware.unified_memory and any(one.serving or one.loading for one in endpoints.values())
    gpus = binding_of(endpoint, reading, settings).gpus
    words = (*endpoint.arguments, *first_member_words(endpoint))
    launched = launch_port(endpoint) is not None
    models: SeenModels | None = reading.by_concern.get(MODELS.name)
    unfit = _misfits(release, endpoint, models.configs) if models and not proven else ()
    spared = proven or crowded
    return WantedOptions(release, endpoint.engine_kind, words, spared, crowded, proven, gpus, launched, unfit)


def _misfits(release: Release, endpoint: EndpointSettings, configs: Mapping[str, str]) -> tuple[Misfit, ...]:
    """Return the mismatches; none where one of the two files is missing or invalid."""
    folders = {mount.target: mount.source for mount in release.spec.mounts}
    places = [folders.get(source.mount, "") for source in (endpoint.draft, endpoint.model) if source is not None]
    if len(places) < 2:
        return ()
    draft, base = (_tree(configs.get(folder, "")) for folder in places)
    section = parsed(plan_of(endpoint).value("drafting"))
    any_vocabulary = isinstance(section, Mapping) and bool(section.get("use_heterogeneous_vocab"))
    found = misfits(base, draft, endpoint.engine_kind, drafting_of(endpoint), any_vocabulary)
    where = f"{places[0]}/config.json of the draft", f"{places[1]}/config.json"
    return tuple(replace(one, text=f"{where[0]} {one.text} ({where[1]})") for one in found)


def _tree(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def changes(releases: tuple[WantedOptions, ...], reading: SeenOptions) -> list[Change]:
    """Ask the image of each release that has not been asked, and refuse the options that it refused."""
    found: list[Change] = []
    for wanted in releases:
        verdict = reading.get(wanted.key)
        if any(one.certain for one in wanted.misfits):
            found.append(_unfit(wanted))
        elif verdict and verdict.refused:
            found.append(_refuse(wanted, verdict))
        elif verdict is None and not wanted.spared:
            found.append(_ask(wanted))
    return found


def _refuse(wanted: WantedOptions, verdict: ImageVerdict) -> Change:
    release = wanted.release
    rows = [f"  {_place(release, row)}: {row.reason}" for row in verdict.refused]
    head = f"endpoint {release.spec.name}: release {release.hash} is refused by its own image {release.spec.image}:"
    text = "\n".join([head, *rows, f"what serves keeps serving; next: {_next(wanted)}"])
    return Change(
        f"switch endpoint {release.spec.name}",
        "its image refuses its options",
        (Refuse(text, code="RW3001", mistake=FIX),),
    )


def _place(release: Release, row: OptionRefusal) -> str:
    """Return where the setting at fault is: the key `image` is not in the engine's file."""
    return row.key if row.key == "image" else f"{release.spec.engine_file}: {row.key or '(no key named)'}"


def _unfit(wanted: WantedOptions) -> Change:
    rows = [f"  {one.text}" for one in wanted.misfits if one.certain]
    head = f"endpoint {wanted.release.spec.name}: its draft does not fit its model, and no engine loads the two:"
    tail = "what serves keeps serving; next: set a `draft` that was made for this model, or none"
    text = "\n".join([head, *rows, tail])
    why = "its draft was made for another model"
    return Change(f"switch endpoint {wanted.release.spec.name}", why, (Refuse(text, code="RW3008", mistake=FIX),))


def _next(wanted: WantedOptions) -> str:
    again = f"to ask the same release again: rm {marker(wanted)} on the host"
    return f"rackwright check INVENTORY, and correct that setting; {again}"


def _ask(wanted: WantedOptions) -> Change:
    release = wanted.release
    name = release.spec.name
    script = ask_script(wanted, release.path, marker(wanted))
    title = f"ask the image of endpoint {name} whether it accepts release {release.hash}"
    why = "it has not been asked, and has the last word"
    return Change(title, why, (Job(endpoint_job("check", name), title, script, LIMIT + 60, code="RW3002"),))


def ask_script(wanted: WantedOptions, folder: str, answer: str) -> str:
    """Return the script that asks the image about the release in `folder`, and stores the JSON in the file `answer`."""
    store = host_script("check_options", marker=answer, keep=KEPT, next=_next(wanted))
    return _run_in_image(wanted, "build_options", docker_run(wanted, folder)) + store


def docker_run(wanted: WantedOptions, folder: str) -> list[str]:
    """Return the command of the container that builds the options: one GPU, no network, no writable host path."""
    spec = wanted.release.spec
    # The engine's file with its key is made by the first start, and is not checked.
    own_key = keyed_dir(spec.name)
    binds = [(mount.source, mount.target) for mount in spec.mounts if not mount.writable and mount.source != own_key]
    words = [*_alone(wanted), *_with_gpu(wanted), "--tmpfs", SCRATCH_MOUNT]
    # Unlike --volume, this does not make a folder that is missing.
    for source, target in (*binds, (folder, RELEASE_MOUNT)):
        words += ["--mount", f"type=bind,source={source},target={target},readonly"]
    words += [argument for key, value in sorted(spec.environment.items()) for argument in ("--env", f"{key}={value}")]
    kind = f"{wanted.engine_kind}+mpirun" if wanted.launched else wanted.engine_kind
    words += ["--entrypoint", "python3", spec.image, "-", kind, spec.mounts[0].target]
    return [*words, f"{RELEASE_MOUNT}/{spec.engine_file}", str(len(wanted.gpus)), *wanted.arguments]


def walk_script(wanted: WantedOptions) -> str:
    """Return the script that prints the options of an endpoint's image as one JSON line, without a file of the host."""
    words = [
        *_alone(wanted),
        *_with_gpu(wanted),
        "--entrypoint",
        "python3",
        wanted.release.spec.image,
        "-",
        wanted.engine_kind,
    ]
    return _run_in_image(wanted, "walk_options", words) + host_script("walk_options", longest=1 << 20)


def schema_script(options: WantedOptions) -> str:
    """Return the script that prints the schema in TensorRT-LLM's image as one JSON line, without a GPU."""
    # Void: where NVIDIA's runtime is Docker's default, an image's own variable would ask for every GPU.
    words = [*_alone(options), "--env", "NVIDIA_VISIBLE_DEVICES=void", "--read-only", "--cap-drop", "ALL"]
    words += ["--entrypoint", "python3", options.release.spec.image, "-"]
    # The text of 3 MiB becomes a JSON string: every quote and end of a line is two bytes.
    return _run_in_image(options, "read_schema", words) + host_script("walk_options", longest=6 << 20)


def _run_in_image(wanted: WantedOptions, program: str, words: Sequence[str]) -> str:
    packed = base64.b64encode(image_program(program).encode()).decode()
    container = helper_container(wanted.release.spec.name, "check")
    return helper_script("run_in_image", container, limit=LIMIT, program=packed, run=shlex.join(words))


def image_program(name: str) -> str:
    """Return the text of `NAME.py` after the shared code (in_image.py): an image gets it as one file."""
    return host_program("in_image") + OURS.sub("", host_program(name))


def _alone(wanted: WantedOptions) -> list[str]:
    """Return the arguments for a short-lived container without a network."""
    name = helper_container(wanted.release.spec.name, "check")
    words = ["docker", "run", "--rm", "-i", "--name", name, "--label", f"{HELPER_LABEL}=check"]
    return [*words, "--network", "none", "--log-driver", "none"]


def _with_gpu(options: WantedOptions) -> list[str]:
    """Return the arguments for one GPU, which is enough for an engine to build its options."""
    return ["--runtime", "nvidia", "--env", f"NVIDIA_VISIBLE_DEVICES={options.gpus[0]}"]


def report(releases: tuple[WantedOptions, ...], reading: SeenOptions) -> str:
    """Report releases that are not proven and whose image could not be asked."""
    rows = [(wanted.release, reading.get(wanted.key)) for wanted in releases if not wanted.spared]
    doubts = [(wanted.release, misfit) for wanted in releases for misfit in wanted.misfits if not misfit.certain]
    drafts = [f"draft of endpoint {release.spec.name}: it may not load: {one.text}" for release, one in doubts]
    not_asked = [
        f"options of endpoint {release.spec.name}: not checked inside the image: {verdict.why}"
        for release, verdict in rows
        if verdict and not verdict.checked
    ]
    crowded = [
        f"options of endpoint {wanted.release.spec.name}: {NOT_ASKED}"
        for wanted in releases
        if wanted.crowded and not wanted.proven and wanted.key not in reading
    ]
    return "\n".join([*drafts, *not_asked, *crowded])


TAKES = RELEASE_TAKES
"""Sections of the settings that it is handed."""
OPTIONS: Concern[tuple[WantedOptions, ...], SeenOptions] = Concern(
    "options", read, parse, wanted, changes, report, alone=True, takes=TAKES
)
