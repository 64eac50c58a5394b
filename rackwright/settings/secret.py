"""A value that prints as a mask everywhere, unmasked only on its way to standard input; and what looks like one."""

from __future__ import annotations

import re
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from pyinfra.api.hiddenvalue import HiddenValue

MASK = "*MASKED*"

_NAME = r"(?:token|secret|password|passwd|api[_-]?key)"
_VALUE = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',]+)"
_BEGINS = r"(?:sk-|hf_|nvapi-|ghp_|glpat-)[\w-]{8,}"
"""Keys that say by their beginning what they are."""
_LOGIN_IN_URL = re.compile(r"(://)[^/\s@\"']+@")
_LOGIN_IN_HEADER = re.compile(r"(?i)\b((?:bearer|basic)[ \t]+)[\w.~+/=-]{8,}")
_KNOWN = re.compile(rf"\b{_BEGINS}")
_OPTION = re.compile(rf"(?i)(--[\w-]*{_NAME}\b[\"']?(?:[ \t]*,)?[ \t\n]+(?:- )?)(?!-|\d+\b|true\b|false\b){_VALUE}")
"""An option and its value as two words: on a command line, in a list of JSON, below each other in YAML."""
_KEYED = re.compile(rf"(?i)([\w-]*{_NAME}[\"']?\s*[:=]\s*)(?!\d+\b|true\b|false\b|null\b){_VALUE}")
_PASSWORD_IN_URL = re.compile(r"://[^/\s@\"':]*:[^/\s@\"']+@")


class Secret(HiddenValue):
    """pyinfra's HiddenValue that also validates, compares and serialises (as a mask).

    `unmask()` gives the text; `str()`, `repr()`, JSON and pydantic dumps give the mask.
    """

    def __init__(self, content: str = "") -> None:
        super().__init__(content, MASK)  # type: ignore[no-untyped-call]

    def to_json(self) -> str:
        """`debug-inventory` calls this; without it pyinfra ends with "Cannot serialize"."""
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiddenValue) and other.unmask() == self.unmask()

    def __hash__(self) -> int:
        return hash(self.unmask())

    def __bool__(self) -> bool:
        return bool(self.unmask())

    @classmethod
    def _parse(cls, value: Any) -> Secret:
        if isinstance(value, cls):
            return value
        if isinstance(value, HiddenValue):
            return cls(value.unmask())
        if isinstance(value, str):
            return cls(value)
        raise ValueError("must be text (put it into ansible-vault)")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._parse, serialization=core_schema.plain_serializer_function_ser_schema(lambda _: MASK)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "writeOnly": True, "description": "a secret: use an ansible-vault value"}


def without_secrets(text: str) -> str:
    """`text` with logins in URLs and headers, and values of telling keys and options, as a mask.

    Keys that only count (`max_num_tokens: 8192`) are left alone.
    """
    text = _LOGIN_IN_URL.sub(rf"\g<1>{MASK}@", text)
    for pattern in (_LOGIN_IN_HEADER, _OPTION, _KEYED):
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return _KNOWN.sub(MASK, text)


def looks_secret(value: str, name: str = "") -> bool:
    """Whether a value is one, by itself or by its name; a path that merely holds such a word is none.

    name: of its key or variable, or its option with the dashes.
    """
    if re.match(rf"{_BEGINS}\Z", value) or _LOGIN_IN_HEADER.search(value) or _PASSWORD_IN_URL.search(value):
        return True
    named = f"{name} {value}" if name.startswith("--") else f"{name}: {value}"
    return bool((_OPTION if name.startswith("--") else _KEYED).match(named))
