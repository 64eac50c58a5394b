"""The settings for editors (JSON Schema) and for people (a reference page), both made from the types."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pydantic.json_schema import models_json_schema

from rackwright.settings.connection import Connection
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.sections import NAME, Frozen

Json = dict[str, Any]
REFERENCES = "#/$defs/"
FILES = "A file of group_vars/ or host_vars/ of a Rackwright site."


def json_schema() -> Json:
    """Return the JSON Schema of one file of group_vars or host_vars: every key, none of them required at top level."""
    definitions = all_definitions()
    host, connection = definitions.pop("HostSettings"), definitions.pop("Connection")
    properties = {**host["properties"], **connection["properties"]}
    endpoint = {"$ref": f"{REFERENCES}EndpointSettings"}
    properties["endpoints"] |= {"patternProperties": {NAME: endpoint}, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rackwright settings",
        "description": FILES,
        "type": "object",
        "properties": properties,
        "patternProperties": {"^ansible_": {}},
        "additionalProperties": False,
        "$defs": definitions,
    }


def json_text() -> str:
    """Return the schema as it is stored."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def all_definitions() -> dict[str, Json]:
    """Return the JSON Schema of each section and model, by the name of its class, with what each key means."""
    models = [(model, "validation") for model in (HostSettings, EndpointSettings, Connection)]
    _, schema = models_json_schema(models, ref_template=REFERENCES + "{model}")  # type: ignore[arg-type]
    definitions: dict[str, Json] = _without_titles(schema["$defs"])
    for model in _below(Frozen):
        if definition := definitions.get(model.__name__):
            _describe(definition["properties"], model)
    return definitions


def _below(model: type[Frozen]) -> Iterator[type[Frozen]]:
    for child in model.__subclasses__():
        yield child
        yield from _below(child)


def _describe(properties: Json, model: type[Frozen]) -> None:
    """Put the text below each field beside it; pydantic does it at every start, for a third of what loading costs."""
    names = {name: field.alias or name for name, field in model.model_fields.items()}
    for kind in reversed(model.__mro__):
        for name, text in _texts(kind).items() if issubclass(kind, Frozen) else ():
            properties[names[name]] = dict(sorted({**properties[names[name]], "description": text}.items()))


def _texts(model: type[Frozen]) -> dict[str, str]:
    """Return the text that follows each field in a class."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str() as text)):
                    found[field.target.id] = inspect.cleandoc(text)
    return found


def _without_titles(value: Any) -> Any:
    """Pydantic's titles repeat the key; a property that is itself named `title` would stay."""
    if isinstance(value, list):
        return [_without_titles(below) for below in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_titles(below) for key, below in value.items() if key != "title" or not isinstance(below, str)}


INTRODUCTION = """\
# Settings

Made from the types by `rackwright schema --markdown`; do not edit it.

Values come from `group_vars/all.yml`, `group_vars/GROUP.yml` and `host_vars/HOST.yml`, each of which may also be a
folder of YAML files, beside `deploy.py` and beside the inventory. The precedence is Ansible's: all, then groups by
depth, `ansible_group_priority` and name, then the host; files beside `deploy.py` are stronger than those beside the
inventory, and `--data KEY=VALUE` is stronger than any file. A stronger key replaces a weaker one as a whole; so it
does within a section (`docker`, `rollout`, ...), whose other keys stay. `engine` alone is merged deep. It, `gate` and
`container` are merged at top level and, where two files describe the same endpoint, within `endpoints.NAME`. On the
command line a section's key is `SECTION.KEY`: `--data docker.users=["ops"]`.
`rackwright check INVENTORY --show-origin` says where each value comes from.

Secrets are [ansible-vault](https://docs.ansible.com/ansible/latest/vault_guide/) values, keys of a wholly encrypted
file, all of whose values count as secrets, or commands that print them, `{command: [pass, show, NAME]}`
([secrets](../how-to/secrets.md)). They are taken only where the type below is *secret*.
"""

SECTIONS = (
    ("Host", "HostSettings", "Top-level keys of a host."),
    (
        "Endpoint",
        "EndpointSettings",
        "Top-level keys too, as the defaults of all endpoints; and keys of `endpoints.NAME`.",
    ),
    ("Connection", "Connection", "How a host is reached. Ansible's names are understood where they are mentioned."),
)


def markdown() -> str:
    """Return the reference page."""
    definitions = all_definitions()
    of_endpoint = set(definitions["EndpointSettings"]["properties"])
    definitions["HostSettings"]["properties"] = {
        key: value for key, value in definitions["HostSettings"]["properties"].items() if key not in of_endpoint
    }
    parts = [INTRODUCTION]
    for title, name, text in SECTIONS:
        parts.append(f"## {title}\n\n{text}\n\n{_table(definitions[name])}")
    for name, definition in definitions.items():
        if name not in {section for _, section, _ in SECTIONS}:
            parts.append(f"## {name}\n\n{one_line(definition.get('description', ''))}\n\n{_table(definition)}")
    return "\n".join(parts)


def _table(definition: Json) -> str:
    required = definition.get("required", [])
    rows = [
        (f"`{key}`", type_of(field), default_of(key, field, required), one_line(field.get("description", "")))
        for key, field in definition["properties"].items()
    ]
    return "| key | type | default | meaning |\n|---|---|---|---|\n" + "".join(
        f"| {' | '.join(row)} |\n" for row in rows
    )


def type_of(field: Mapping[str, Any]) -> str:
    """Return a key's type in words; a section is a link on the reference page."""
    return " or ".join(dict.fromkeys(_types(field))) or "any"


def _types(field: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in field:
        name = field["$ref"].removeprefix(REFERENCES)
        yield f"[{name}](#{name.lower()})"
    elif field.get("writeOnly"):
        yield "secret"
    elif branches := field.get("anyOf", field.get("oneOf")):
        for branch in branches:
            if branch.get("type") != "null":
                yield from _types(branch)
    elif "enum" in field or "const" in field:
        yield ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    elif field.get("type") == "array":
        yield f"list of {type_of(field.get('items', {}))}"
    else:
        words = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
        yield words.get(str(field.get("type")), str(field.get("type", "any")))


def default_of(key: str, field: Mapping[str, Any], required: list[str]) -> str:
    """Return a key's default, as a cell of a table; empty where it is nothing, or a section's own."""
    if key in required:
        return "required"
    value = field.get("default")
    return "" if value in (None, [], {}) or isinstance(value, dict) else f"`{json.dumps(value)}`"


def one_line(text: str) -> str:
    """Return a text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
