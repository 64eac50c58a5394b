"""Writes rackwright/operations/arguments.py: the operations' keyword arguments, from the types of the settings.

Run it with `python scripts/arguments.py`; tests/unit/test_operation_arguments.py compares the file with its output.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.secret import Secret

FILE = Path(__file__).parents[1] / "rackwright" / "operations" / "arguments.py"
HEAD = '''\
"""Keyword arguments of the operations: each the keys of one section of the settings, with the same types.

Made by `python scripts/arguments.py` from the types of the settings; do not edit it. Type checkers and editors read
it where a `deploy.py` calls an operation. Meanings, units and defaults are in docs/reference/operations.md. A secret
comes out of a vault, a command (`{"command": ["pass", "show", "ngc"]}`) or an environment variable, never out of a
file in clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict
'''
SECTIONS = ("docker", "firewall", "registry", "encodings", "models", "watch")
"""Sections that an operation has to itself."""
ENDPOINT = ("endpoint_name", "endpoints", *EndpointSettings.model_fields)
"""Keys of `endpoint()`."""
PROFILE = "profile"
"""Of no operation: it is weaker than the files of settings, which are read before the deploy file."""


def main() -> None:
    """Write the file."""
    FILE.write_text(text())
    print(FILE)


def text() -> str:
    """Return the whole file: what several operations go by, the sections, an endpoint."""
    host = get_type_hints(HostSettings, include_extras=True)
    shared = [key for key in HostSettings.model_fields if key not in (PROFILE, *SECTIONS, *ENDPOINT)]
    parts = [_class("Site", "The sections that no single operation has to itself.", host, shared)]
    for name in SECTIONS:
        hints = get_type_hints(host[name], include_extras=True)
        parts.append(_class(name.title(), f"The section `{name}`.", hints, host[name].model_fields))
    parts.append(_class("Endpoint", "The keys of an endpoint.", host, ENDPOINT))
    return "\n\n".join([HEAD, *parts])


def _class(name: str, what: str, hints: Mapping[str, Any], keys: Iterable[str]) -> str:
    head = f'class {name}Arguments(TypedDict, total=False):\n    """{what}"""\n\n'
    return head + "".join(f"    {key}: {' | '.join(dict.fromkeys(_types(hints[key])))}\n" for key in keys)


def _types(hint: Any) -> Iterator[str]:
    """Yield the types that an argument may have: a section is a mapping, a list a sequence; None is left out."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Annotated:
        yield from _types(inner[0])
    elif kind in (Union, types.UnionType):
        yield from (name for one in inner if one is not types.NoneType for name in _types(one))
    elif kind is Literal:
        yield f"Literal[{', '.join(map(json.dumps, inner))}]"
    elif kind is tuple:
        yield f"Sequence[{_joined(inner[0])}]"
    elif kind is not None:
        yield f"Mapping[{', '.join(map(_joined, inner))}]"
    elif isinstance(hint, type) and issubclass(hint, BaseModel):
        yield "Mapping[str, Any]"
    elif hint is Secret:
        yield from ("str", "Mapping[str, Sequence[str]]")
    else:
        yield hint.__name__


def _joined(hint: Any) -> str:
    return " | ".join(dict.fromkeys(_types(hint)))


if __name__ == "__main__":
    main()
