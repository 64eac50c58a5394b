"""Paths that options and variables name inside the container: provided by a mount, or else by the image."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from rackwright.paths import ENCODINGS_MOUNT, KEYED_MOUNT, RELEASE_MOUNT, SCRATCH_MOUNT
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.named_paths import Named, named_paths

CODE, NO_ENCODINGS = "RW0334", "RW0344"
HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""A name of the hub: `owner/name`."""
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*://")
TRUE = frozenset({"1", "ON", "YES", "TRUE"})
"""As huggingface_hub reads a variable (constants.py, _is_true)."""
OTHER_HUBS = ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE")
ENCODINGS = "TIKTOKEN_ENCODINGS_BASE"


@dataclass(frozen=True)
class InContainer:
    """A container's mounts, and whether it asks a hub for more."""

    endpoint: EndpointSettings
    mounts: tuple[str, ...] = field(default=())

    def has(self, path: str) -> bool:
        """Return True if a mount provides a path."""
        return any(path == mount or path.startswith(f"{mount}/") for mount in self.mounts)

    @property
    def is_offline(self) -> bool:
        """True if Hugging Face's libraries ask no hub: Rackwright sets HF_HUB_OFFLINE=1."""
        variables = {"HF_HUB_OFFLINE": "1", **self.endpoint.environment}
        other = any(variables.get(name, "").upper() in TRUE for name in OTHER_HUBS)
        return not other and (variables["HF_HUB_OFFLINE"] or variables.get("TRANSFORMERS_OFFLINE", "")).upper() in TRUE


def check_paths(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Yield what an endpoint names and its container cannot or may not have; for gpt-oss, missing encodings too."""
    container = InContainer(endpoint, tuple(_plain(mount) for mount in _mounts(endpoint)))
    found = [one for named in named_paths(endpoint) for one in _judged(named, container)]
    yield from found
    yield from _without_encodings(endpoint, found)


def _mounts(endpoint: EndpointSettings) -> Iterator[str]:
    yield from (source.mount for source in (endpoint.model, endpoint.draft) if source)
    # Of a release and of what holds the key the engine's YAML is the one file to be named.
    yield from (f"{folder}/{endpoint.engine_file}" for folder in (RELEASE_MOUNT, KEYED_MOUNT))
    yield SCRATCH_MOUNT
    if endpoint.harmony:
        yield ENCODINGS_MOUNT


def _judged(named: Named, container: InContainer) -> Iterator[Finding]:
    value = named.value.removeprefix("file://")
    if not value or value in named.words or ELSEWHERE.match(value):
        return
    if value.startswith("/"):
        yield from _absolute(named, _plain(value), container)
    elif named.takes == "model":
        yield from _model(named, value, container)
    elif named.takes == "hub_file":
        if container.is_offline:
            yield _refused(named, f"{value} is a file of the hub", container, offline=True)
    elif named.takes == "template" and re.search(r"[{}\n]", value):
        if not named.inline:
            text = "is the template itself, and this engine takes a file or a name of its own: leave it out"
            yield Finding(named.path, text, code=CODE)
    elif "/" in value or (named.takes == "file" and not value.startswith(("{", "["))):
        text = f"{value} is not an absolute path: no mount provides it, so it must be in the image's working folder"
        yield Finding(named.path, text, Level.WARN, code=CODE)


def _absolute(named: Named, path: str, container: InContainer) -> Iterator[Finding]:
    if container.has(path):
        return
    if _is_mounted(path, container) or (named.takes == "model" and not _is_under(path, table("paths")["code"])):
        refused = _refused(named, f"no mount provides {path}", container)
        yield replace(refused, overridable=True)
    else:
        text = f"no mount provides {path}, so the image must have it, and nothing has looked there"
        yield Finding(named.path, text, Level.WARN, code=CODE)


def _model(named: Named, value: str, container: InContainer) -> Iterator[Finding]:
    if value.startswith((".", "~")) or value.count("/") > 1:
        yield _refused(named, f"{value} is not an absolute path, and no mount provides it", container)
    elif HUB.fullmatch(value):
        if container.is_offline:
            yield _refused(named, f"{value} is a name of the hub", container, offline=True)
    elif container.is_offline:
        text = f"{value} is neither a path nor a name as OWNER/NAME; {_next(named, value, container)}"
        yield Finding(named.path, text, Level.WARN, code=CODE)


def _is_mounted(path: str, container: InContainer) -> bool:
    """Return True if images have nothing there: in a folder for mounts, or in one that holds a mount of the release."""
    beside = [mount.rpartition("/")[0] for mount in container.mounts]
    # A folder at the top, as /opt or /app, mostly has more of the image's than the mount.
    folders = [*table("paths")["mounted"], *(folder for folder in beside if folder.count("/") > 1)]
    return _is_under(path, folders)


def _is_under(path: str, folders: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _refused(named: Named, text: str, container: InContainer, offline: bool = False) -> Finding:
    closed = ", and the container asks no hub (HF_HUB_OFFLINE=1)" if offline else ""
    return Finding(named.path, f"{text}{closed}; {_next(named, named.value, container)}", code=CODE)


def _next(named: Named, value: str, container: InContainer) -> str:
    """Return what to write, with the mount."""
    endpoint, last = container.endpoint, value.rstrip("/").rpartition("/")[2]
    if named.role == "draft" and endpoint.draft:
        return f"write {endpoint.draft.mount}, where `draft` is mounted"
    if named.role == "draft":
        mount = value if value.startswith("/") else f"/config/models/{last}"
        repository = value if HUB.fullmatch(value) else "OWNER/NAME"
        here = "" if value.startswith("/") else f", and {mount} here"
        return f"write `draft: {{repository: {repository}, mount: {mount}}}`{here}"
    if named.role == "model" and endpoint.model:
        return f"write {endpoint.model.mount}, where `model` is mounted, or leave it out"
    if named.role == "encodings":
        advice = "leave it out" if endpoint.harmony else "leave it out and set harmony: true"
        return f"{advice}: they are mounted at {ENCODINGS_MOUNT} then"
    return f"put it into a folder that is mounted ({', '.join(_read_only(endpoint))}), and write its path there"


def _read_only(endpoint: EndpointSettings) -> Iterable[str]:
    """Return the mounts that a user fills."""
    return [source.mount for source in (endpoint.model, endpoint.draft) if source]


def _plain(path: str) -> str:
    """Return a path without dots and double slashes, as the kernel resolves it."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return f"/{'/'.join(parts)}"


def _without_encodings(endpoint: EndpointSettings, found: Iterable[Finding]) -> Iterator[Finding]:
    """Warn of gpt-oss without its encodings: it starts, answers /health, and fails at the first prompt."""
    if endpoint.harmony or not _is_gpt_oss(endpoint) or any(one.path[0] == "environment" for one in found):
        return
    if ENCODINGS not in endpoint.environment:
        text = (
            "is false, and gpt-oss needs the tiktoken encodings: without a way out it fails at the first prompt; "
            "set it to true, or name the image's own folder: environment: {TIKTOKEN_ENCODINGS_BASE: FOLDER}"
        )
        yield Finding(("harmony",), text, Level.WARN, code=NO_ENCODINGS)


def _is_gpt_oss(endpoint: EndpointSettings) -> bool:
    source = endpoint.model
    return source is not None and "gpt-oss" in f"{source.repository} {source.mount} {source.path or ''}".lower()
