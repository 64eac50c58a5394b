"""Secrets in texts that are shown: what the settings name as one, and what looks like one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from rackwright.masks import MASK
from rackwright.plan.change import Change
from rackwright.settings.secret import Secret, without_secrets


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with these secrets, and with all that looks like one, as a mask."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return without_secrets(text)


def secrets_of(value: Any) -> Iterator[str]:
    """Yield the texts of all secrets in settings, however deep."""
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
    """Return changes as a run's record keeps them: sentences, and their diffs as one text; None without changes."""
    changes, secrets = list(changes), tuple(secrets_of(settings))
    diff = "\n".join(change.diff for change in changes if change.diff)
    return {
        "changes": [mask(change.sentence, secrets) for change in changes],
        "diff": mask(diff, secrets) if diff else None,
    }
