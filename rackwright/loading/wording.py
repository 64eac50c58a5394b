"""Problems of values in sentences: pydantic's errors in the words of the YAML files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from rackwright.settings import connection
from rackwright.settings.acme import EMAIL
from rackwright.settings.driver import BRANCH, VERSION
from rackwright.settings.gateway import DNS_NAME
from rackwright.settings.gateway_keys import CLIENT, MODEL
from rackwright.settings.misfit import MisfitError
from rackwright.settings.secret import Secret, shown_value
from rackwright.settings.sections import (
    ABSOLUTE,
    AMOUNT,
    BLOB,
    CACHE,
    CAPABILITY,
    DEBIAN,
    DIRECT,
    DROP_IN,
    FINGERPRINT,
    FOLDER,
    HTTPS,
    IMAGE,
    INTERFACE,
    MINISIGN,
    MODEL_FOLDER,
    NAME,
    REGISTRY,
    REPOSITORY,
    SHA256,
    SHM,
    SOME,
    URL,
    USER,
    VARIABLE,
    YAML_FILE,
)
from rackwright_engines.key_path import KeyPath, dotted
from rackwright_engines.nearest import nearest

SECRET_PATHS: tuple[KeyPath, ...] = (
    ("registry", "key"),
    ("models", "hub_token"),
    ("notify", "url"),
    ("notify", "header"),
    ("gateway", "certificate_key"),
    ("api_key",),
    ("endpoints", "NAME", "api_key"),
)
"""`NAME` stands for any."""
SECTIONS = {path[:1] for path in SECRET_PATHS if len(path) == 2}
"""Sections that take one: a value in the place of the whole section may be it."""
KINDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_unicode": "text",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "tuple_type": "a list, as [a, b]",
    "list_type": "a list, as [a, b]",
    "dict_type": "a mapping of `key: value` lines",
    "model_type": "a mapping of `key: value` lines",
    "model_attributes_type": "a mapping of `key: value` lines",
}
"""Demands of pydantic's kinds of error, in words."""
SIZE = re.compile(r"^(?:List|Tuple|Set|Dictionary|String) should ")
"""The beginning of pydantic's messages about a length or a pattern."""
MAPPING_KINDS = ("dict_type", "model_type", "model_attributes_type")
PATTERNS = {
    ABSOLUTE: "an absolute path of letters, digits and ._@+-",
    AMOUNT: "a number, or a part such as 10%",
    SOME: "a number from 1 on, or a part from 1% on",
    REGISTRY: "a name, as nvcr.io or registry.example.com:5000, without https:// and folders",
    connection.HOSTNAME: "a name or an address",
    VARIABLE: "a name of letters, digits and _",
    IMAGE: "an image with its tag, as nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6 (a digest goes into image_digest)",
    MODEL_FOLDER: "a name of letters, digits and ._- of at most 63",
    FOLDER: "a name of small letters, digits and ._- of at most 63",
    NAME: "a name of small letters, digits and _- of at most 63",
    CLIENT: "a client's name of small letters, digits and ._@- of at most 63",
    MODEL: "a model's name as /v1/models answers it, without folders",
    CACHE: "an absolute path, or one that begins with ~/ for every user's home",
    MINISIGN: "the public key of minisign, the last line of minisign.pub, which begins with RW",
    FINGERPRINT: "the fingerprint of a key: 40 digits and capital letters A to F, without blanks",
    URL: "an address that begins with http:// or https://, without blanks, quotes and backslashes",
    DIRECT: "a name, suffix, address or network, as .example.com or 10.0.0.0/8",
    DEBIAN: "a version of a Debian package, as 1.18.0-1",
    HTTPS: "an address that begins with https://",
    EMAIL: "an e-mail address",
    CAPABILITY: "a capability without CAP_, as SYS_PTRACE",
    SHM: "a size in m or g, as 16g",
    USER: "numbers of user and group, as 1000:1000",
    SHA256: "a SHA-256: 64 hexadecimal digits, with small letters",
    BLOB: "git's hash of a file: 40 hexadecimal digits",
    REPOSITORY: "a repository of the hub, as openai/gpt-oss-120b",
    DROP_IN: "a drop-in's file name, as override.conf, or its absolute path",
    DNS_NAME: "a name of DNS in small letters, as llm.example.org",
    INTERFACE: "a network interface's name, as eth0 or bond0.100",
    BRANCH: "a branch of NVIDIA's driver, as 580",
    VERSION: "an exact version of NVIDIA's driver, as 580.159.04",
    YAML_FILE: "a file name that ends in .yaml or .yml, without folders",
}
"""Demands of the settings' patterns, in words."""


_NAMES = [".".join(map(str, path)) for path in SECRET_PATHS if "NAME" not in path]
SECRET_PLACES = f"secrets go into {', '.join(_NAMES[:-1])} and {_NAMES[-1]}"


def path_of(detail: ErrorDetails) -> KeyPath:
    """Return where a value stands, without pydantic's names for the branches of a union and for mapping keys."""
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, MisfitError):
        return error.path
    loc = detail["loc"]
    is_key = loc[-1:] == (KEY,) and detail["type"] != "extra_forbidden"
    named = loc[: -2 if is_odd_key(detail) else -1] if is_key else loc
    return tuple(part for before, part in zip(("", *named), named, strict=False) if not _is_branch(before, part))


KEY, BRANCHES = "[key]", ("[word]", "[networks]")
"""pydantic's names for the key of a mapping, and the settings' for the branches of `allow_from`."""


def _is_branch(before: str | int, part: str | int) -> bool:
    return before == "allow_from" and part in BRANCHES


MOST = 200
"""Characters of a wrong value that one line shows."""
FEW = 12
"""Keys of a section that one line can name."""


def _instead(key: str, above: KeyPath, keys: Sequence[str]) -> str:
    """Return the key that was meant; where none is near, those that a small section takes."""
    taken = f": {dotted(above)} takes {', '.join(keys)}" if above and 0 < len(keys) <= FEW else ""
    return nearest(key, keys) or taken


def explain(model: type[BaseModel], detail: ErrorDetails) -> str:
    """Return one pydantic error as a sentence that never shows a secret."""
    path, value, kind = path_of(detail), detail.get("input"), detail["type"]
    if is_odd_key(detail):
        return f"a key must be text: put it in quotes, since YAML reads it as {_read_as(value)}"
    if kind == "extra_forbidden":
        return f"unknown key{_instead(str(path[-1]), path[:-1], _fields(model, path[:-1]))}"
    if isinstance(value, Secret) and is_secret(path):
        return _requirement(detail)
    if isinstance(value, Secret):
        return misplaced(path)
    if kind == "string_type":
        return f"must be text; put it in quotes{_shown(path, value)}" if value is not None else "must not be empty"
    if kind == "missing":
        return "is missing"
    empty = ", and is empty: leave the key out" if value is None and kind in MAPPING_KINDS else ""
    return f"{_requirement(detail)}{empty}{_shown(path, value) if path else ''}"


def is_odd_key(detail: ErrorDetails) -> bool:
    """Return True where the key of a mapping is a number, a switch, a date or nothing."""
    return detail["loc"][-1:] == (KEY,) and detail["type"] == "string_type"


def _read_as(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else "nothing (null)" if key is None else str(key)


def _requirement(detail: ErrorDetails) -> str:
    """Return what the value must be."""
    kind, limits = detail["type"], detail.get("ctx", {})
    if kind in KINDS:
        return f"must be {KINDS[kind]}"
    if kind == "string_pattern_mismatch" and limits["pattern"] in PATTERNS:
        return f"must be {PATTERNS[limits['pattern']]}"
    text = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    text = SIZE.sub("must ", text).replace(" after validation", "")
    if kind == "literal_error":
        text += nearest(str(detail["input"]), re.findall(r"'([^']*)'", str(limits["expected"])))
    return text if text.startswith("must") or kind == "value_error" else f"must be {text}"


def _shown(path: KeyPath, value: Any) -> str:
    """Return the wrong value, unless it is long, or a secret by its path or by how it looks."""
    if isinstance(value, Mapping | list | tuple | Secret) or value is None or _may_be_secret(path, value):
        return ""
    text = repr(value)
    return f", not {text}" if len(text) <= MOST else f", not {text[:MOST]}... ({len(text)} characters)"


def _may_be_secret(path: KeyPath, value: Any) -> bool:
    """Return True for a secret's path, a section that takes one, and a value that looks like one."""
    takes_one = is_secret(path) or path in SECTIONS
    return takes_one or shown_value(str(value), str(path[-1])) != str(value)


def _fields(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Return the keys that are right at a path below `model`."""
    current: type[BaseModel] | None = model
    for part in path:
        if current is None or part not in current.model_fields:
            return []
        current = section(current.model_fields[str(part)].annotation)
    return [field.alias or name for name, field in current.model_fields.items()] if current else []


def section(annotation: Any) -> type[BaseModel] | None:
    """Return the settings section that a field holds, also behind `| None`; None for plain values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for found in map(section, get_args(annotation)) if found), None)


@lru_cache(4096)
def is_secret(path: KeyPath) -> bool:
    """Return True where the settings take a secret."""
    return any(
        len(path) == len(one) and all(expected in ("NAME", part) for expected, part in zip(one, path, strict=True))
        for one in SECRET_PATHS
    )


def misplaced(path: KeyPath) -> str:
    """Return what to say of a vault value at a path that shows its value."""
    shown = "`docker inspect`" if "environment" in path else "files and messages"
    return f"a vault value is not taken here, since it would show in {shown}; {SECRET_PLACES}"
