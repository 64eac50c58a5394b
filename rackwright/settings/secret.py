"""A value that prints as a mask everywhere, unmasked only on its way to standard input; and what looks like one."""

from __future__ import annotations

import re
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from pyinfra.api.hiddenvalue import HiddenValue

MASK = "*MASKED*"

_NAME = (
    r"(?:(?P<counts>token|(?<=[_-])pass)|(?P<lies>credentials?|private[_-]?key|(?<=[_-])pwd)|secret|password|passwd"
    r"|passphrase|(?:api|access|account|storage|secret|encryption|signing|license|auth)[_-]?key)(?![\w-])[\"']?"
)
"""How names of secrets end. What `counts` names may be a number, what `lies` names the path of a file."""
_BEFORE = r"[\w-]{0,99}?"
"""How they begin: no longer, so that a line of a megabyte is read in one go."""
_NONE = r"(?![\"']?(?:true|false|null|none)[.;:]?(?:[\s\"',}\])&|]|\Z)|\*MASKED\*)"
_COUNT = r"(?(counts)(?![\"']?\d{1,9}[.;:]?(?:[\s\"',}\])&|]|\Z)))"
_PLACE = r"(?(lies)(?![\"']?[~.]{0,2}/))"
_VALUE = rf"{_NONE}{_COUNT}{_PLACE}(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',]+)"
_BEGINS = r"(?:sk-|hf_|nvapi-|gh[oprsu]_|github_pat_|glpat-|xox[abprs]-)[\w-]{8,}"
"""Keys that say by their beginning what they are."""
_LOGIN_IN_URL = re.compile(r"(://)[^/\s@\"']+@")
_TOKEN_IN_URL = re.compile(
    r"(?i)([?&](?:[\w-]{0,40}[_-])?(?:token|secret|password|passwd|key|sig|signature|credential)=)[^&\s\"'#]+"
)
_LOGIN_IN_HEADER = re.compile(r"(?i)\b((?:bearer|basic)[ \t]+)[\w.~+/=-]{8,}")
_HEADER = re.compile(r"(?i)\b(authorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:[a-z]+[ \t]+)?+)(?!\*)[^\s\"',]+")
_LOGIN_OPTION = re.compile(r"(?<!\S)((?:-u|--user|--proxy-user)[ \t=]+[\"']?(?!\d+:\d)[^\s\"':]{1,99}:)[^\s\"']+")
"""A login as curl takes it; a user and group by number are none."""
_KNOWN = re.compile(rf"\b{_BEGINS}")
_OPTION = re.compile(rf"(?i)((?<![\w-])--{_BEFORE}{_NAME}(?:[ \t]*,)?[ \t\n]+(?:- )?)(?!--|-[a-z]\b){_VALUE}")
"""An option and its value as two words: on a command line, in a list of JSON, below each other in YAML."""
_KEYED = re.compile(rf"(?i)((?<![\w-]){_BEFORE}{_NAME}\s*[:=]\s*){_VALUE}")
_PASSWORD_IN_URL = re.compile(r"://[^/\s@\"':]*:[^/\s@\"']+@")
_IN_VALUES = (_LOGIN_IN_HEADER, _HEADER, _PASSWORD_IN_URL, _TOKEN_IN_URL)
"""What makes any value a secret."""


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
    for pattern in (_TOKEN_IN_URL, _LOGIN_IN_HEADER, _HEADER, _LOGIN_OPTION, _OPTION, _KEYED):
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return _KNOWN.sub(MASK, text)


def looks_secret(value: str, name: str = "") -> bool:
    """Whether a value is one, by itself or by its name; a path that merely holds such a word is none.

    name: of its key or variable, or its option with the dashes.
    """
    if re.match(rf"{_BEGINS}\Z", value) or any(pattern.search(value) for pattern in _IN_VALUES):
        return True
    named = f"{name} {value}" if name.startswith("--") else f"{name}: {value}"
    return bool((_OPTION if name.startswith("--") else _KEYED).match(named))
