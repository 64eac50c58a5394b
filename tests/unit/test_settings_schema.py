"""The stored schema and reference page say what the types say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rackwright.settings.json_schema import json_schema, json_text, markdown

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
NEXT = (
    "next: rackwright schema --out docs/reference/settings.schema.json, and --markdown --out docs/reference/settings.md"
)


def test_the_stored_schema_is_up_to_date() -> None:
    assert (REFERENCE / "settings.schema.json").read_text() == json_text(), NEXT


def test_the_stored_reference_is_up_to_date() -> None:
    assert (REFERENCE / "settings.md").read_text() == markdown(), NEXT


def test_unknown_keys_are_refused_at_every_level_and_ansibles_pass() -> None:
    schema = json_schema()
    sections = [schema, *schema["$defs"].values()]
    assert all(section["additionalProperties"] is False for section in sections)
    assert "^ansible_" in schema["patternProperties"]


def test_endpoints_know_their_inner_keys() -> None:
    schema = json_schema()
    endpoints = schema["properties"]["endpoints"]
    assert list(endpoints["patternProperties"].values()) == [{"$ref": "#/$defs/EndpointSettings"}]
    assert endpoints["additionalProperties"] is False
    assert "port" in schema["$defs"]["EndpointSettings"]["properties"]


def test_connection_keys_have_their_yaml_names() -> None:
    properties = json_schema()["properties"]
    assert {"ssh_user", "_sudo", "accept_new_host_keys"} <= set(properties)
    assert "sudo" not in properties


def test_a_secret_is_said_to_be_one() -> None:
    assert "| `hub_token` | secret |" in markdown()


def test_no_key_of_the_reference_lacks_a_type() -> None:
    rows = [text_line.split(" | ") for text_line in markdown().splitlines() if text_line.startswith("| `")]
    assert len(rows) > 60
    assert all(row[1].strip() for row in rows)


def numbers_of(node: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every kind of number that the schema has, with where it stands."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if isinstance(node, dict):
        if node.get("type") in ("integer", "number"):
            yield path, node
        for key, below in node.items():
            yield from numbers_of(below, f"{path}/{key}")


def test_every_number_has_an_upper_and_a_lower_limit() -> None:
    numbers = dict(numbers_of(json_schema()))
    assert len(numbers) > 30
    upper, lower = {"maximum", "exclusiveMaximum", "enum"}, {"minimum", "exclusiveMinimum", "enum"}
    assert [path for path, one in numbers.items() if not (upper & set(one) and lower & set(one))] == []


def test_every_key_of_every_section_has_a_meaning() -> None:
    schema = json_schema()
    sections = {"top level": schema, **schema["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, definition in sections.items()
        for key, field in definition.get("properties", {}).items()
        if not field.get("description") and "$ref" not in field
    ]
    assert silent == []
