"""Writes docs/reference/operations.md: each operation's keyword arguments, from the types of the settings.

Run it with `python scripts/operations.py`; tests/unit/test_operation_arguments.py compares the page with what it
would write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from rackwright import operations
from rackwright.operations import concerns
from rackwright.settings.json_schema import Json, all_definitions, default_of, one_line, type_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "operations.md"
HEAD = """\
# Operations

Made by `python scripts/operations.py` from the types of the settings; do not edit it.

`from rackwright.operations import docker, endpoint, ...`: each applies one concern to the host, in a site and in a
pyinfra deploy of your own ([how](../how-to/use-in-your-own-deploy.md)). Every argument is a keyword and may be left
out. It is checked when it is declared, before anything is connected or written. A *secret* comes out of a vault or an
environment variable, never out of a file in clear.
"""
WHOLE = "HostSettings"
"""Top-level keys, an endpoint's among them."""
UNITS = (("seconds", r"\bseconds\b"), ("MiB/s", r"MiB/s"), ("GiB", r"\bGiB\b"), ("bytes", r"^bytes\b"))
"""A unit, and the words of a meaning that name it."""
NUMBERS = ("integer", "number")

Operation = Callable[..., None]


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


def page() -> str:
    """Return the whole page: an operation is a section, in the order of a deploy."""
    definitions = all_definitions()
    return "\n".join([HEAD, *(_section(operation, definitions) for operation in shown())])


def shown() -> list[Operation]:
    """Return the operations that apply a concern, in the order in which a deploy calls them."""
    found = [getattr(operations, name) for name in operations.__all__]
    ordered = [one for one in found if getattr(one, "__module__", "") == concerns.__name__]
    return sorted(ordered, key=lambda operation: int(operation.__code__.co_firstlineno))


def _section(operation: Operation, definitions: dict[str, Json]) -> str:
    name, arguments = operation.__name__, [*_extra(operation), *_keys(operation, definitions)]
    table = ["| argument | type | unit | default | meaning |", "|---|---|---|---|---|", *arguments]
    parts = [f"## {name}()", _summary(operation), *_from(operation, definitions)]
    return "\n\n".join([*parts, "\n".join(table) if arguments else "It takes no arguments."]) + "\n"


def _summary(operation: Operation) -> str:
    """Return what it does: its docstring up to the paragraphs about arguments."""
    paragraphs = (inspect.getdoc(operation) or "").split("\n\n")
    return "\n\n".join(filter(None, (re.split(r"(?m)^\w+: ", text)[0].strip() for text in paragraphs)))


def _from(operation: Operation, definitions: dict[str, Json]) -> Iterator[str]:
    """Where the settings have the same keys."""
    name = operation.__name__
    if (section := _section_of(operation, definitions)) != WHOLE:
        yield f"The settings have them in the section [`{name}`](settings.md#{section.lower()})."
    elif _hints(operation):
        inner = ", and in `endpoints.NAME`" if name == "endpoint" else ""
        yield f"The settings have them at [top level](settings.md#host){inner}."


def _section_of(operation: Operation, definitions: dict[str, Json]) -> str:
    """Return the class of the section that an operation has to itself, or the whole."""
    reference = str(definitions[WHOLE]["properties"].get(operation.__name__, {}).get("$ref", ""))
    return reference.rpartition("/")[2] or WHOLE


def _hints(operation: Operation) -> list[str]:
    """Names of the arguments that are keys of the settings."""
    packed = get_type_hints(operation).get("arguments")
    return list(get_type_hints(get_args(packed)[0])) if packed else []


def _keys(operation: Operation, definitions: dict[str, Json]) -> Iterator[str]:
    properties = definitions[_section_of(operation, definitions)]["properties"]
    return (_row(key, properties[key], definitions) for key in _hints(operation))


def _row(key: str, field: Json, definitions: dict[str, Json]) -> str:
    meaning = one_line(field.get("description") or _described(field, definitions))
    kind = type_of(field).replace("](#", "](settings.md#")
    return f"| `{key}` | {kind} | {unit(field, meaning)} | {default_of(key, field, [])} | {meaning} |"


def _described(field: Json, definitions: dict[str, Json]) -> str:
    return str(definitions[field["$ref"].rpartition("/")[2]].get("description", "")) if "$ref" in field else ""


def unit(field: Json, meaning: str) -> str:
    """Return the unit of a number, by the text of its meaning; none for a count or a port."""
    if not any(branch.get("type") in NUMBERS for branch in field.get("anyOf", [field])):
        return ""
    return next((name for name, words in UNITS if re.search(words, meaning, re.IGNORECASE)), "")


def _extra(operation: Operation) -> Iterator[str]:
    """Arguments that are no key of the settings, as `wait`."""
    for name, parameter in inspect.signature(operation).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            yield f"| `{name}` | true or false | | `{_default(parameter.default)}` | {_meaning(operation, name)} |"


def _default(value: Any) -> str:
    return str(value).lower()


def _meaning(operation: Operation, name: str) -> str:
    [text] = re.findall(rf"(?ms)^{name}: (.*?)(?=\s+\w+: |\Z)", inspect.getdoc(operation) or "")
    return one_line(text[:1].upper() + text[1:])


if __name__ == "__main__":
    main()
