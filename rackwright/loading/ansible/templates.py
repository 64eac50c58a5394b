"""Templates in settings: no setting depends on another one, so nothing evaluates Jinja in a value or in a key. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rackwright.loading.ansible.jinja import holds_jinja
from rackwright.loading.wording import is_secret
from rackwright.settings.secret import Secret
from rackwright_engines.key_path import KeyPath

ENDPOINTS = "endpoints"
ENGINES = ("engine", "arguments")
"""Keys whose text goes to the engine, which has templates of its own."""
LOG_OPTIONS = ("docker", "daemon", "log-opts")
"""The setting in which dockerd evaluates Go's templates: https://docs.docker.com/engine/logging/log_tags/."""
CHAT = re.compile(r"\bmessages?\b")
"""Names that a chat template iterates over, and no variable of a site has."""
SITES = re.compile(
    r"\b(?:lookup\s*\(|groups\s*\[|(?:hostvars|group_names|inventory_\w+|ansible_\w+|vault_\w+|\w+_vault)\b)"
)
"""Names that only Ansible knows."""
FIELD = re.compile(r"(?<![\w\])'\"])\.[A-Z]")
"""A field of Go's, as `.Name`."""
PLAIN = "Jinja is not evaluated here: write the value itself"
SECRET = (
    f"{PLAIN}, as an inline `!vault` string, by the command that prints it (`{{command: [pass, show, NAME]}}`), "
    "or this key with its value in the encrypted file"
)


def templates(key: str, value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Yield each value and key below a setting that holds Jinja, wrapped as a secret or not, and what to do instead."""
    for path, text in _texts(value, (key,)):
        if isinstance(text, Secret):
            if is_secret(path) and holds_jinja(text.unmask()):
                yield path, SECRET
        elif holds_jinja(text) and not _is_meant(_within(path), text):
            yield path, SECRET if is_secret(path) else PLAIN


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str | Secret]]:
    """Yield all texts below a value, keys included."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield (*path, str(key)), str(key)
            yield from _texts(below, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from _texts(below, (*path, index))
    elif isinstance(value, set | frozenset):
        yield from ((path, str(one)) for one in sorted(value, key=str))
    elif isinstance(value, bytes):
        yield path, value.decode(errors="replace")
    elif isinstance(value, str | Secret):
        yield path, value


def _within(path: KeyPath) -> KeyPath:
    """Return the path below an endpoint, as it would be at the top."""
    return path[2:] if path[0] == ENDPOINTS else path


def _is_meant(path: KeyPath, text: str) -> bool:
    """Return True where another program evaluates the template: an engine a chat's, dockerd its log's tag."""
    if path[:1] and path[0] in ENGINES:
        return bool(CHAT.search(text)) and not SITES.search(text)
    return path[: len(LOG_OPTIONS)] == LOG_OPTIONS and "{%" not in text and bool(FIELD.search(text))
