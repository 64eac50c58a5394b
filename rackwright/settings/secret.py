"""A value that prints as a mask everywhere, unmasked only on its way to standard input; and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from rackwright.adapter.bases import HiddenValue
from rackwright.masks import BEGINNINGS, KNOWN, LOGIN_IN_HEADER, MASK, PASSWORD_IN_URL, TOKEN_IN_URL, keep_hidden

_NAME = (
    r"(?:(?P<counts>token|(?<=[_-])pass)|(?P<lies>credentials?|private[_-]?key|(?<=[_-])pwd)|secret|password|passwd"
    r"|passphrase|(?:api|access|account|subscription|storage|secret|encryption|signing|license|auth)[_-]?key)(?![\w-])[\"']?"
)
"""How names of secrets end. What `counts` names may be a number, what `lies` names the path of a file."""
_BEFORE = r"[\w-]{0,99}?"
"""How they begin: no longer, so that a line of a megabyte is read in one go."""
_NONE = r"(?![\"']?(?:true|false|null|none)[.;:]?(?:[\s\"',}\])&|]|\Z)|\*MASKED\*)"
_COUNT = r"(?(counts)(?![\"']?(?:\d{1,9}[.;:]?(?:[\s\"',}\])&|]|\Z)|[<\[])))"
"""Numbers, and marks as `</s>`, which tokenizers call tokens."""
_PLACE = r"(?(lies)(?![\"']?[~.]{0,2}/))"
_VALUE = rf"{_NONE}{_COUNT}{_PLACE}(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',]+)"
_LOGIN_IN_URL = re.compile(r"(://)[^/\s@\"']+@")
_HEADER = re.compile(r"(?i)\b(authorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:[a-z]+[ \t]+)?+)(?!\*)[^\s\"',]+")
_FLAGS = "[#0-46BGILNORSVZfgijklnqsv]{0,12}"
"""Curl's switches without a value, which stand before the letter of one with a value: `-sSu`."""
_LOGIN_OPTION = re.compile(
    rf"(?<!\S)((?:-{_FLAGS}[uU][ \t=]*|--(?:user|proxy-user|auth)[ \t=]+)[\"']?(?!\d+:\d)"
    r"[^\s\"':=/]{1,99}:)(?!//)[^\s\"']+"
)
"""A login as curl takes it, also without the space; a user and group by number do not match."""
_BY_PROGRAM = re.compile(
    r"(?<![\w-])((?:sshpass[ \t]+-p|(?:ipmitool[ \t][^|;&\n]{0,200}?-P|redis-cli[ \t][^|;&\n]{0,200}?-a)(?=[ \t])"
    r"|mysql\w*[ \t][^|;&\n]{0,200}?(?<=[ \t])-p(?=[^ \t]))[ \t]*[\"']?)(?!\*)[^\s\"']+"
)
"""Passwords by options of a letter, which mean another thing to another program."""
_LOGIN_BY_PROGRAM = re.compile(
    r"(?<![\w-])((?:(?:https?|xhs?)[ \t][^|;&\n]{0,200}?(?<=[ \t])-a[ \t=]*[\"']?[^\s\"':=/]{1,99}:"
    r"|(?:https?|xhs?)[ \t][^|;&\n]{0,200}?-A[ \t]*bearer[ \t][^|;&\n]{0,200}?(?<=[ \t])-a[ \t=]*[\"']?"
    rf"|curl[ \t][^|;&\n]{{0,200}}?(?<=[ \t])(?:-{_FLAGS}E[ \t]*|--(?:proxy-)?cert[ \t=]+)[\"']?"
    r"(?!pkcs11:)[^\s\"':]{1,200}:"
    r"|openssl[ \t][^|;&\n]{0,200}?(?<=[ \t])-pass(?:in|out)?[ \t]+[\"']?pass:))(?!\*)[^\s\"']+"
)
"""Logins of HTTPie, and the passwords of key files as curl and openssl take them."""
_COOKIE = re.compile(
    rf"(?i)(?<!\S)((?:-{_FLAGS}b|--cookie)[ \t=]+[\"']?[\w.-]{{1,99}}=|-H[ \t]*[\"']?cookie:[ \t]*)(?!\*)[^\s\"']+"
)
"""A cookie as curl takes it; a file of cookies has no `=`."""
_OPTION = re.compile(rf"(?i)((?<![\w-])--?{_BEFORE}{_NAME}(?:[ \t]*,)?[ \t\n]+(?:- )?)(?!--|-[a-z]\b){_VALUE}")
"""An option and its value as two words: on a command line, in a list of JSON, below each other in YAML."""
_KEYED = re.compile(rf"(?i)((?<![\w-]){_BEFORE}{_NAME}\s*[:=]\s*){_VALUE}")
_IN_VALUES = (LOGIN_IN_HEADER, _HEADER, PASSWORD_IN_URL, TOKEN_IN_URL)
"""What makes any value a secret."""

_OPTIONS = (_LOGIN_OPTION, _COOKIE, _BY_PROGRAM, _LOGIN_BY_PROGRAM)
"""What other programs' options make a secret."""
_REFERENCE = re.compile(r"\$\([^()]{0,200}\)|\$\{?\w{1,99}\}?|`[^`]{0,200}`")
"""What a shell puts in the place of a word: the secret itself lies elsewhere."""


class Secret(HiddenValue):
    """pyinfra's HiddenValue that also validates, compares and serialises (as a mask).

    `unmask()` gives the text; `str()`, `repr()`, JSON and pydantic dumps give the mask.
    """

    def __init__(self, content: str = "", source: str = "") -> None:
        """source: where it comes from, as users know it: ansible-vault, or a command."""
        super().__init__(content, MASK)  # type: ignore[no-untyped-call]
        self.source = source

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
        """Return the secret, without the line break that `echo KEY >file` and a block of YAML leave at its end."""
        text = value.unmask() if isinstance(value, HiddenValue) else value
        if not isinstance(text, str):
            raise ValueError("must be text (put it into ansible-vault), or {command: [PROGRAM, ...]}, which prints it")
        text = text.rstrip("\r\n")
        keep_hidden(text)
        return cls(text)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._parse, serialization=core_schema.plain_serializer_function_ser_schema(lambda _: MASK)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        words = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        command = {"type": "object", "properties": {"command": words}, "required": ["command"]}
        return {
            "anyOf": [{"type": "string"}, {**command, "additionalProperties": False}],
            "writeOnly": True,
            "description": "a secret: use an ansible-vault value, or {command: [PROGRAM, ...]}, which prints it",
        }


def without_secrets(text: str) -> str:
    """`text` with logins in URLs and headers, and values of telling keys and options, as a mask.

    Keys that only count (`max_num_tokens: 8192`) are left alone.
    """
    text = _LOGIN_IN_URL.sub(rf"\g<1>{MASK}@", text)
    for pattern in (PASSWORD_IN_URL, TOKEN_IN_URL, LOGIN_IN_HEADER, _HEADER, *_OPTIONS, _OPTION, _KEYED):
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return KNOWN.sub(MASK, text)


def looks_secret(value: str, name: str = "") -> bool:
    """Return True if a value is a secret, as such or by its name; a path that merely holds such a word is not.

    name: of its key or variable, or its option with the dashes.
    """
    if re.match(rf"{BEGINNINGS}\Z", value) or any(pattern.search(value) for pattern in _IN_VALUES):
        return True
    named = f"{name} {value}" if name.startswith("--") else f"{name}: {value}"
    return bool((_OPTION if name.startswith("--") else _KEYED).match(named))


def tells_secret(text: str, option: str = "") -> bool:
    """Return True for a text with a secret in it, as a header, a connection string or JSON has; a template has none.

    option: the word before it on a command line.
    """
    if "{{" in text or "{%" in text:
        return False
    words = _REFERENCE.sub(MASK, f"{option} {text}".strip().replace("\\", ""))
    words = re.sub(r"(://)[^/\s@\"']*\*MASKED\*@", rf"\g<1>{MASK}@", words)
    return without_secrets(words) != words


def tells_password(words: Sequence[str]) -> bool:
    """Return True for a command line whose program takes a password by an option of a letter (`sshpass -p`)."""
    command = _REFERENCE.sub(MASK, " ".join(words))
    return any(pattern.search(command) for pattern in (_BY_PROGRAM, _LOGIN_BY_PROGRAM))


def shown_value(value: str, name: str) -> str:
    """Return a value as it may be shown beside its key: a mask where the key's name says that it is a secret."""
    return without_secrets(value) if not looks_secret(value, name) or without_secrets(value) != value else MASK


def showable_data(value: Any, name: str = "") -> Any:
    """Return the values that another program prints, with a mask in the place of each text that holds a secret."""
    if isinstance(value, Mapping):
        return {key: showable_data(below, str(key)) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [showable_data(below, name) for below in value]
    return shown_value(value, name) if isinstance(value, str) else value
