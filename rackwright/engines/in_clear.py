"""Secrets that somebody wrote where everybody reads them: in environment, arguments, or the engine's YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rackwright.engines.finding import Finding
from rackwright.settings.model import EndpointSettings
from rackwright.settings.origin import KeyPath
from rackwright.settings.secret import looks_secret

SHOWN = {
    "environment": "in `docker inspect` and in the unit",
    "arguments": "in `ps` and in the unit",
    "engine": "in a file of the release that every user of the host reads",
}
"""Where what stands in a section is seen."""
_HUB = re.compile(r"(?i)hf[_-]|hugging")
_KEY = re.compile(r"(?i)api[_-]?key")


def check_secrets(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Every word that looks like a secret, with the place where it belongs. The word itself is in no message."""
    for path, name, value in (*_environment(endpoint), *_arguments(endpoint), *_options(endpoint.engine, ("engine",))):
        if looks_secret(value, name):
            text = f"looks like a secret, and would show {SHOWN[str(path[0])]}: {_way_out(f'{name} {value}')}"
            yield Finding(path, text, code="RW0324")


def _environment(endpoint: EndpointSettings) -> Iterator[tuple[KeyPath, str, str]]:
    for name, value in endpoint.environment.items():
        yield ("environment", name), name, value


def _arguments(endpoint: EndpointSettings) -> Iterator[tuple[KeyPath, str, str]]:
    """A word that follows an option is judged with it."""
    words = endpoint.arguments
    for index, (before, word, following) in enumerate(zip(("", *words), words, (*words[1:], ""), strict=False)):
        option, _, value = word.partition("=")
        if word.startswith("--"):
            yield ("arguments", index), option.lstrip("-") if value else option, value or following
        elif not before.startswith("--") or "=" in before:
            yield ("arguments", index), "", word


def _options(options: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, str, str]]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _options(value, (*path, str(key)))
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                yield (*path, str(key)), str(key), text


def _way_out(words: str) -> str:
    if _HUB.search(words):
        return "models are fetched before an endpoint starts; write it as models.hub_token, a vault value"
    if _KEY.search(words):
        return "write the key that clients send as api_key, a vault value"
    return "leave it out; the key that clients send is api_key, the hub's token models.hub_token, both vault values"
