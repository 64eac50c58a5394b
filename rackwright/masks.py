"""Masks: the secrets that this process has read, and logins in addresses and headers, appear in no line."""

from __future__ import annotations

import re
import sys
from traceback import format_exception
from types import TracebackType

from rackwright_engines import key_path

MASK, BEGINNINGS = key_path.MASK, key_path.BEGINNINGS
LEAST = 8
"""Characters of a secret that is looked for in every line: a shorter one is part of too many words."""
LONGEST = 512
PASSWORD_IN_URL = re.compile(r"(://[^/\s@\"':]{0,200}:)(?!\d{1,5}[/?#]|\*MASKED\*@)[^\s\"']{1,512}(?=@)")
"""A password that is not encoded may hold a slash or an @; a port that a slash follows does not count."""
TOKEN_IN_URL = re.compile(
    r"(?i)([?&](?:[\w-]{0,40}[_-])?(?:token|secret|password|passwd|key|sig|signature|credential)=)[^&\s\"'#]+"
)
LOGIN_IN_HEADER = re.compile(r"(?i)\b((?:bearer|basic)[ \t]+)[\w.~+/=-]{8,}")
_KEY_IN_HEADER = re.compile(r"\b((?:[Bb]earer|Basic)[ \t]+)(?=\S*\d)[\w.~+/=-]{8,}")
"""The same in sentences, where `basic questions` are no login."""
KNOWN = re.compile(rf"(?<![\w/.-]){BEGINNINGS}")
_secrets: set[str] = set()


def keep_hidden(secret: str) -> None:
    """Hide a secret in every line that this process shows from now on."""
    if LEAST <= len(secret) <= LONGEST:
        _secrets.add(secret)


def hidden(text: str) -> str:
    """Return `text` with each secret that this process has read as a mask."""
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def without_logins(text: str) -> str:
    """Return `text` with logins in URLs and headers, and keys known by their beginning, as a mask; other words stay."""
    if "://" in text:
        text = PASSWORD_IN_URL.sub(rf"\g<1>{MASK}", text)
    for pattern in (TOKEN_IN_URL, _KEY_IN_HEADER):
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return KNOWN.sub(MASK, text)


def tell_mistake(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a mistake of Rackwright's own, without the secrets that it may quote."""
    print(without_logins(hidden("".join(format_exception(kind, error, trace)))), end="", file=sys.stderr)
