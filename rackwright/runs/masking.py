"""Secrets in texts that are shown: what the settings name as one, and what looks like one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from rackwright.plan.change import Change
from rackwright.settings.secret import MASK, Secret

_LOGIN_IN_URL = re.compile(r"(://)[^/\s@\"']+@")
_LOGIN_IN_HEADER = re.compile(r"(?i)\b((?:bearer|basic)[ \t]+)[\w.~+/=-]{8,}")
_KNOWN = re.compile(r"\b(?:sk-|hf_|nvapi-|ghp_|glpat-)[\w-]{8,}")
"""Keys that say by their beginning what they are."""
_OPTION = re.compile(
    r"(?i)(--[\w-]*(?:token|secret|password|passwd|api[_-]?key)\b[\"']?(?:[ \t]*,)?[ \t\n]+(?:- )?)"
    r"(?!-|\d+\b|true\b|false\b)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',]+)"
)
"""An option and its value as two words: on a command line, in a list of JSON, below each other in YAML."""
_KEYED = re.compile(
    r"(?i)([\w-]*(?:token|secret|password|passwd|api[_-]?key)[\"']?\s*[:=]\s*)"
    r"(?!\d+\b|true\b|false\b|null\b)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',]+)"
)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with secrets, logins in URLs and headers, and values of telling keys and options as a mask.

    Keys that only count (`max_num_tokens: 8192`) are left alone.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _LOGIN_IN_URL.sub(rf"\g<1>{MASK}@", text)
    for pattern in (_LOGIN_IN_HEADER, _OPTION, _KEYED):
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return _KNOWN.sub(MASK, text)


def secrets_of(value: Any) -> Iterator[str]:
    """Texts of all secrets in settings, however deep."""
    if isinstance(value, Secret):
        if value:
            yield value.unmask()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_of(getattr(value, name))
    elif isinstance(value, dict):
        for inner in value.values():
            yield from secrets_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secrets_of(inner)


def change_fields(changes: Iterable[Change], settings: BaseModel) -> dict[str, Any]:
    """Changes as the record of a run keeps them: sentences, and their diffs as one text; None when there are none."""
    changes, secrets = list(changes), tuple(secrets_of(settings))
    diff = "\n".join(change.diff for change in changes if change.diff)
    return {
        "changes": [mask(change.sentence, secrets) for change in changes],
        "diff": mask(diff, secrets) if diff else None,
    }
