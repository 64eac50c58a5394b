"""Refusals as tests ask for them: a code, and the fields that the message names (host, file, key, number)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from rackwright.messages import RackwrightError

CODE = re.compile(r"\bRW\d{4}\b")
_PREFIX = re.compile(r"^\s*\[[^\]]*\] ")
_CONTINUED = ("  ", "next: ")


@contextmanager
def refused(
    code: str, *fields: object, error: type[Exception] = RackwrightError
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect the block to raise a refusal with this code that names every field."""
    with pytest.raises(error) as caught:
        yield caught
    refusal(str(caught.value), code, *fields)


def refusal(output: str, code: str, *fields: object) -> str:
    """Return the first refusal with this code that names every field; fails without one."""
    found = [text for text in refusals(output) if code in CODE.findall(text)]
    named = [text for text in found if all(str(field) in text for field in fields)]
    assert named, f"no {code} that names {fields}; {found or codes(output)} in:\n{output}"
    return named[0]


def refusals(output: str) -> list[str]:
    """Each line that has a code, and the lines below it that belong to it: indented, or of the same host."""
    found: list[str] = []
    of = ""
    for row in output.splitlines():
        host = _PREFIX.match(row)
        if CODE.search(row):
            found.append(row)
            of = host[0] if host else ""
        elif found and (_PREFIX.sub("", row).startswith(_CONTINUED) or (host and host[0] == of)):
            found[-1] += f"\n{row}"
        else:
            of = ""
    return found


def codes(output: str) -> list[str]:
    """Every code that an output has, in its order."""
    return CODE.findall(output)


def row_of(output: str, mark: str, name: str, *fields: object) -> str:
    """Return the first row of a gate or of preflight with this mark and name that has every field; fails without."""
    start = f"{mark}: "
    rows = [row for row in output.splitlines() if f"{name}: " in row.partition(start)[2]]
    named = [row for row in rows if all(str(field) in row for field in fields)]
    assert named, f"no {mark} row {name} with {fields}; {rows} in:\n{output}"
    return named[0]


def each_refused(texts: Iterable[str], *expected: tuple[object, ...]) -> None:
    """Fail unless the texts are these refusals in this order, each a code and the fields that it names."""
    for text, (code, *fields) in zip(texts, expected, strict=True):
        refusal(text, str(code), *fields)
