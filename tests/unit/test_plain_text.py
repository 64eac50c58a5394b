"""No text of the settings holds a line break: it would end a line of a unit, of apt's configuration, of a message."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from rackwright.settings.connection import Connection
from rackwright.settings.host_settings import HostSettings

FREE = {"engine", "daemon", "endpoints"}
"""Fields that are another program's YAML or JSON, which knows line breaks, or are read as settings again."""


def plain(kind: Any) -> list[Any]:
    """Find the text types within an annotation, each with its constraints: a bare `str`, or an annotated one."""
    if kind is str:
        return [kind]
    if typing.get_origin(kind) is typing.Annotated:
        base = typing.get_args(kind)[0]
        return [kind] if base is str else plain(base)
    return [found for inner in typing.get_args(kind) for found in plain(inner)]


def sections(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for inner in typing.get_args(kind):
        yield from sections(inner)


def texts(model: type[BaseModel], path: str = "") -> Iterator[Any]:
    """All texts of a section, in lists, as keys and values of mappings, and in the sections below."""
    for name, field in model.model_fields.items():
        if name in FREE:
            continue
        kind = field.annotation if not field.metadata else typing.Annotated[field.annotation, *field.metadata]
        for number, found in enumerate(plain(field.annotation) if plain(field.annotation) != [str] else [kind]):
            yield pytest.param(found, id=f"{path}{name}-{number}")
        for below in sections(field.annotation):
            yield from texts(below, f"{path}{name}.")


@pytest.mark.parametrize("kind", [*texts(HostSettings), *texts(Connection)])
@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u2028"], ids=ascii)
def test_no_text_holds_a_control_character(kind: Any, character: str) -> None:
    adapter = TypeAdapter(kind)
    for text in (f"a{character}b", f"a{character}", f"/srv/a{character}", f"https://a{character}", f"a/b:1{character}"):
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


def test_the_walk_sees_lists_keys_and_sections_below() -> None:
    found = [param.id for param in texts(HostSettings)]
    for name in (
        "proxy.no_proxy-0",
        "environment-0",
        "environment-1",
        "model.files.path-0",
        "rollout.hooks.plan.command-0",
    ):
        assert name in found, found
