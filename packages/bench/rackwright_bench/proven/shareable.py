"""The settings of an endpoint that a committed file may have: what decides its figures, and nothing private. Pure.

A closed list of keys, and of their values only those that name no machine, address, login or folder of a host. What is
held back is listed by its key, so that a reader knows that it belongs to what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rackwright.engines.in_clear import check_secrets
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.key_path import dotted

DECISIVE = (
    *("engine_kind", "image", "image_digest", "engine_version", "model", "draft", "engine", "arguments", "environment"),
    *("sizes_on_command_line", "harmony", "network", "container"),
)
"""Keys of an endpoint that its figures depend on; ports, networks, keys, hooks and time-outs are not among them."""
ALWAYS = ("engine_kind", "image")
"""Keys that say something even where they are the default: defaults change with the version."""
OF_A_MODEL = frozenset({"repository", "revision", "mount", "include", "exclude"})
"""Keys of a model that mean the same on any host."""
NAMING = frozenset({"served-model-name", "root-path", "host", "port"})
"""Options of engines that only say how, or where, it is asked."""
REGISTRIES = frozenset({"docker.io", "nvcr.io", "ghcr.io", "quay.io", "gcr.io", "public.ecr.aws"})
"""Registries that anybody reaches."""
FILE_ENDS = "yaml|yml|json|jsonl|py|txt|jinja|model|safetensors|so|sh"
MACHINE = re.compile(
    r"://|@|~/|\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-fA-F:]*::?[0-9a-fA-F:]*\]"
    rf"|(?<![\w./-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?!(?:{FILE_ENDS})\b)[a-z]{{2,}}(?![\w-])"
)
"""An address of any kind, a login, or a host's name with a domain."""
FOLDER = re.compile(r"(?<![\w.@~+-])/[\w.@+-]+(?:/[\w.@+-]+)*")
IN_CONTAINER = "/config"


def shareable_settings(endpoint: EndpointSettings, names: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings, and the keys that are held back. names: of hosts and addresses of the inventory."""
    given = endpoint.model_dump(mode="json", include=set(DECISIVE), exclude_defaults=True)
    given |= {key: getattr(endpoint, key) for key in ALWAYS}
    for source in ("model", "draft"):
        if given.get(source):
            given[source] = {key: value for key, value in given[source].items() if key in OF_A_MODEL}
    mounts = tuple(one.mount for one in (endpoint.model, endpoint.draft) if one is not None)
    secret = {finding.path[:2] for finding in check_secrets(endpoint)}
    held = [path for path in _private(given, names, (*mounts, IN_CONTAINER)) if path[:2] not in secret]
    held += [path for path in secret if path[0] in given]
    held += [(source, "path") for source in ("model", "draft") if getattr(getattr(endpoint, source), "path", None)]
    if is_private_image(endpoint.image):
        held.append(("image",))
    whole = [("arguments",) if path[0] == "arguments" else path for path in held]
    unique = list(dict.fromkeys(whole))
    public = {
        key: value for key in DECISIVE if (value := _without(given.get(key), (key,), unique)) not in (None, {}, [])
    }
    return public, sorted(dotted(path) for path in unique if path[-1] not in NAMING)


def is_private_image(image: str) -> bool:
    """Return True for an image of a registry that not everybody reaches."""
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost") and first not in REGISTRIES


def _private(value: Any, names: Collection[str], folders: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of private values; images, models and what may name a commit are judged elsewhere."""
    for section in ("engine", "environment", "arguments"):
        yield from _below(value.get(section), (section,), names, folders)


def _below(
    value: Any, path: tuple[Any, ...], names: Collection[str], folders: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if str(key).lstrip("-").replace("_", "-") in NAMING:
                yield (*path, key)
            else:
                yield from _below(inner, (*path, key), names, folders)
    elif isinstance(value, list | tuple):
        if any(True for one in value for _ in _below(one, path, names, folders)):
            yield path
    elif isinstance(value, str) and is_private(value, names, folders):
        yield path


def is_private(text: str, names: Collection[str], folders: tuple[str, ...]) -> bool:
    """Return True for a text that names a machine or a folder. folders: those that any container of it has."""
    foreign = (path for path in FOLDER.findall(text) if not any(f"{path}/".startswith(f"{one}/") for one in folders))
    named = any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) for name in names if name)
    return bool(MACHINE.search(text)) or named or any(True for _ in foreign)


def _without(value: Any, path: tuple[Any, ...], held: list[tuple[Any, ...]]) -> Any:
    """Return a value without what is held back in it."""
    if path in held:
        return None
    if isinstance(value, Mapping):
        inner = {key: _without(below, (*path, key), held) for key, below in value.items() if (*path, key) not in held}
        return {key: below for key, below in inner.items() if below is not None or value[key] is None}
    return value
