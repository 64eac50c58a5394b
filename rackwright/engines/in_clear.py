"""Secrets in places that everybody reads: in environment, arguments, hooks, or the engine's YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.secret import looks_secret, tells_password, tells_secret
from rackwright_engines.finding import Finding
from rackwright_engines.key_path import KeyPath, is_key

SHOWN = {
    "environment": "in `docker inspect` and in the unit",
    "arguments": "in `ps` and in the unit",
    "engine": "in a file of the release that every user of the host reads",
    "drain_hook": "in the host's `ps`",
    "ready_hook": "in the host's `ps`",
    "rollout": "in this machine's `ps`",
    "notify": "in the `ps` of hosts and of this machine",
}
"""The places where the values of a section are seen."""
CODE = "RW0324"
HOOKS = ("drain_hook", "ready_hook")
FROM_FILE = "write it into a file (0600) that the hook's program reads"
_HUB = re.compile(r"(?i)hf[_-]|hugging")
_KEY = re.compile(r"(?i)api[_-]?key")


def check_secrets(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Yield every word that looks like a secret, with the place where it belongs. The word itself is in no message."""
    for path, name, value in (*_environment(endpoint), *_arguments(endpoint), *_values(endpoint.engine, ("engine",))):
        if _is_one(name, value):
            yield _finding(path, _way_out(f"{name} {value}"))
    for section, values in (("environment", endpoint.environment), ("engine", endpoint.engine)):
        if any(map(is_key, _names(values))):
            yield _finding((section,), f"it is the name of a key; {_way_out('')}")
    for hook in HOOKS:
        yield from _hook(getattr(endpoint, hook), (hook,))


def check_hooks(settings: HostSettings) -> Iterator[Finding]:
    """Check the commands around a rollout in the same way; they run on the control machine."""
    hooks = settings.rollout.hooks
    for event in type(hooks).model_fields:
        for index, hook in enumerate(getattr(hooks, event)):
            yield from _hook(hook.command, ("rollout", "hooks", event, index, "command"))
    yield from _hook(settings.notify.command, ("notify", "command"))


def showable(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those that would quote a value in which there is a secret."""
    secret = [one.path for one in findings if one.code == CODE]
    return [one for one in findings if one.code == CODE or not any(_meet(one.path, path) for path in secret)]


def _meet(one: KeyPath, other: KeyPath) -> bool:
    """Return True if one of two paths leads through the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _finding(path: KeyPath, way_out: str) -> Finding:
    text = f"looks like a secret, and would show {SHOWN[str(path[0])]}: {way_out}"
    return Finding(path, text, code=CODE)


def _is_one(name: str, value: str) -> bool:
    """Return True for a secret, and for a text that holds one: a connection string, or JSON with a password in it."""
    return looks_secret(value, name) or tells_secret(value)


def _hook(words: Sequence[str], path: KeyPath) -> Iterator[Finding]:
    """Check each word, together with an option before it that makes it a secret."""
    for index, (before, argument) in enumerate(zip(("", *words), words, strict=False)):
        option = before if before.startswith("-") else ""
        if tells_secret(argument, option):
            yield _finding((*path, index), FROM_FILE)
    if tells_password(words):
        yield _finding(path, FROM_FILE)


def _environment(endpoint: EndpointSettings) -> Iterator[tuple[KeyPath, str, str]]:
    for name, value in endpoint.environment.items():
        yield ("environment", name), name, value


def _arguments(endpoint: EndpointSettings) -> Iterator[tuple[KeyPath, str, str]]:
    """Yield each word, together with the option that it follows."""
    words = endpoint.arguments
    for index, (before, argument, following) in enumerate(zip(("", *words), words, (*words[1:], ""), strict=False)):
        option, _, value = argument.partition("=")
        if argument.startswith("--"):
            yield ("arguments", index), option.lstrip("-") if value else option, value or following
        elif not before.startswith("--") or "=" in before:
            yield ("arguments", index), "", argument


def _values(value: Any, path: KeyPath, name: str = "") -> Iterator[tuple[KeyPath, str, str]]:
    """Yield each text below a value: its path, the nearest key, and the text. An item of a list stands at its key."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _values(below, (*path, str(key)), str(key))
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _values(below, path, name)
    elif isinstance(value, str):
        yield path, name, value


def _names(value: Any) -> Iterator[str]:
    """Yield the names of all keys at and below a value."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield str(key)
            yield from _names(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _names(below)


def _way_out(words: str) -> str:
    if _HUB.search(words):
        return "models are fetched before an endpoint starts; write it as models.hub_token, a vault value"
    if _KEY.search(words):
        return "write the key that clients send as api_key, a vault value"
    return "leave it out; the key that clients send is api_key, the hub's token models.hub_token, both vault values"
