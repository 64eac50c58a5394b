"""The site's file of the gateway's keys: read with the line of each mistake, changed without touching a comment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rackwright.loading import key_file_text
from rackwright.loading.wording import explain, path_of
from rackwright.loading.yaml_file import Document, parse
from rackwright.messages import SettingsError, paragraph, writing
from rackwright.one_writer import one_writer
from rackwright.settings.gateway_keys import GatewayKey, GatewayKeys
from rackwright.settings.origin import Origin, origin_of
from rackwright.settings.problems import Problem
from rackwright_engines.key_path import KeyPath, dotted

CODE = "RW0236"
LARGEST = 4 << 20
"""Bytes of the file at most: ten thousand keys have a quarter of it."""
MOST_VALUES = 200_000
"""Values of the file at most: a key has 8 to 20."""
MOST_LINES = 5
"""Mistakes that one message names."""


def load_keys(path: Path) -> GatewayKeys:
    """Return the keys in a file; none without a file. Raises SettingsError with file and line of what is wrong."""
    if not os.path.lexists(path):
        return GatewayKeys()
    return parse_keys(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise SettingsError(f"{path} is not a regular file; next: ls -l {path}", code=CODE)
        if path.stat().st_size > LARGEST:
            raise SettingsError(f"{path} is larger than {LARGEST >> 20} MiB; next: ls -l {path}", code=CODE)
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise SettingsError(f"{path} cannot be read: {why}; next: ls -l {path}", code=CODE) from None


def parse_keys(text: str, file: str) -> GatewayKeys:
    """Return the keys that a text names. file: its name for messages. Raises SettingsError."""
    document = parse(text, file, MOST_VALUES)
    problems = list(document.problems)
    if not problems:
        try:
            keys = GatewayKeys.model_validate(document.values)
        except ValidationError as error:
            problems = list(_wrong(error, document))
        else:
            problems = list(_twice(keys, document))
    if problems:
        raise SettingsError(_message(problems, file), code=CODE)
    return keys


def _wrong(error: ValidationError, document: Document) -> Iterator[Problem]:
    for detail in error.errors():
        path = path_of(detail)
        yield _problem(document, path, explain(GatewayKeys, _masked(detail)))


def _masked(detail: ErrorDetails) -> ErrorDetails:
    """Return the error without a wrong hash, which may be the key itself, of any form."""
    is_hash = detail["loc"][-1:] == ("sha256",) and isinstance(detail["input"], str)
    return {**detail, "input": None} if is_hash else detail


def _twice(keys: GatewayKeys, document: Document) -> Iterator[Problem]:
    """Yield the keys that are in the file twice, and clients with several keys that do not expire."""
    hashes: dict[str, int] = {}
    lasting: dict[str, int] = {}
    for n, key in enumerate(keys.keys):
        if (first := hashes.setdefault(key.sha256, n)) != n:
            yield _problem(document, ("keys", n, "sha256"), f"comes twice; the first is of {keys.keys[first].name}")
        elif key.expires is None and (first := lasting.setdefault(key.name, n)) != n:
            where = origin_of(document.origins, ("keys", first, "name"))
            text = f"{key.name} has a key on line {where.line_number if where else 0} that does not expire either"
            yield _problem(document, ("keys", n, "name"), text)


def _problem(document: Document, path: KeyPath, text: str) -> Problem:
    return Problem(origin_of(document.origins, path), path, text, code=CODE)


def _message(problems: list[Problem], file: str) -> str:
    lines = [f"  {one.where or Origin(file)}: {_at(one)}{one.text}" for one in problems[:MOST_LINES]]
    more = f"\n  and {len(problems) - MOST_LINES} more" if problems[MOST_LINES:] else ""
    return paragraph(
        f"{file} is not a file of keys, and no gateway was changed:\n" + "\n".join(lines) + more + "\n"
        f"next: fix these, or take the last good one: git checkout {file}"
    )


def _at(problem: Problem) -> str:
    return f"{dotted(problem.path)}: " if problem.path else ""


def change_keys(path: Path, change: Callable[[GatewayKeys], GatewayKeys]) -> tuple[GatewayKeys, GatewayKeys]:
    """Change a file of keys, one process at a time; returns the keys before and after.

    The new file takes the place of the old one whole, and is on the disk before this returns. Comments stay. Raises
    SettingsError for a file that is wrong, and RackwrightError for one that cannot be written.
    """
    target = path.resolve()  # a link to a shared file stays one
    with writing(path), one_writer(target.parent):
        text = _read(path) if os.path.lexists(path) else ""
        before = parse_keys(text, str(path))
        after = change(before)
        if after != before:
            _replace(target, _changed(text, before, after, path))
    return before, after


def _changed(text: str, before: GatewayKeys, after: GatewayKeys, path: Path) -> str:
    """Return the text with the keys as they are to be; it is read again, so that no edit can say another thing."""
    for edited in key_file_text.edits(text, before, after):
        try:
            found = parse_keys(edited, "")
        except SettingsError:
            continue
        if _by_hash(found) == _by_hash(after):
            return edited
    raise SettingsError(f"{path} would have more keys than a file may; next: revoke what is not used", code=CODE)


def _by_hash(keys: GatewayKeys) -> dict[str, GatewayKey]:
    return {key.sha256: key for key in keys.keys}


def _replace(target: Path, text: str) -> None:
    """Replace a file durably; its mode and its line ends stay."""
    new = target.with_name(f".{target.name}.new")
    with new.open("w", newline=_line_end(target)) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, new)
    new.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _line_end(path: Path) -> str:
    """Return how lines of a file end; an editor of another system writes two characters."""
    return "\r\n" if path.exists() and b"\r\n" in path.read_bytes() else "\n"
