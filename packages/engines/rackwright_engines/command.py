"""`python -m rackwright_engines check`: what is wrong with an engine's options, for anybody."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rackwright_engines.data import PRODUCTS
from rackwright_engines.datasets import unused, used
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.check import check_serving
from rackwright_engines.key_path import dotted
from rackwright_engines.options.keys import GIVEN
from rackwright_engines.question import ENGINES, Question, UnreadableError, as_options, question

FINE, REFUSED, UNREADABLE = 0, 1, 2
SIZE = 4 << 20
"""Bytes of a file, or of a line of a batch, at most."""
IN_FILE = "RW0315"
"""Of a name that is for a command line, not for a file."""
DECIDES = "the engine decides"
EPILOG = """\
FILE is YAML, JSON, or a command line as `vllm serve MODEL --max-model-len 8192`; - is standard input.

exit status:
  0  nothing is refused
  1  something is refused
  2  the question, or a line of a batch, cannot be read

example: python -m rackwright_engines check --engine vllm --version 0.33.0 serve.yaml
"""


def console() -> int:
    """Answer what is typed."""
    return main(sys.argv[1:])


def main(words: Sequence[str]) -> int:
    """Answer; returns the exit status."""
    args = _parser().parse_args(words)
    try:
        status: int = args.handler(args)
        sys.stdout.flush()
        return status
    except UnreadableError as error:
        print(f"rackwright_engines: {_line(str(error))}", file=sys.stderr)
        return UNREADABLE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own flush finds no pipe
        return REFUSED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m rackwright_engines", description="What vLLM, SGLang and TensorRT-LLM accept."
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    raw = argparse.RawDescriptionHelpFormatter
    check = verbs.add_parser("check", help="check options for a version", epilog=EPILOG, formatter_class=raw)
    check.add_argument("file", nargs="?", default="-", metavar="FILE", help="the options (default: standard input)")
    check.add_argument("--engine", choices=ENGINES)
    check.add_argument("--version", metavar="VERSION", help="for example 0.33.0, or an image's tag")
    check.add_argument("--model", metavar="NAME", help="what is served, as OWNER/NAME")
    check.add_argument("--draft", metavar="NAME", help="what drafts for it")
    several = "for example H200; more than once where it is one of several"
    check.add_argument("--gpu", action="append", default=[], metavar="NAME", help=several)
    check.add_argument("--json", action="store_true", help="answer in JSON")
    check.add_argument(
        "--batch",
        action="store_true",
        help="FILE has a JSON object a line: engine, version, options; so has the answer",
    )
    check.set_defaults(handler=_check)
    verbs.add_parser("data", help="name the data that is used, and what is not").set_defaults(handler=_data)
    return parser


def _data(_: argparse.Namespace) -> int:
    print(f"{used()} ({used().folder})")
    for reason in unused():
        print(f"not used: {reason}")
    return FINE


def _check(args: argparse.Namespace) -> int:
    if args.batch:
        extra = [f"--{name}" for name in ("engine", "version", "model", "draft", "gpu") if getattr(args, name)]
        if extra:
            raise UnreadableError(f"{extra[0]} is for one file; with --batch each line has its own")
        with _opened(args.file) as stream:
            return max(map(_answered, _lines(stream)), default=FINE)
    missing = [name for name in ("engine", "version") if not getattr(args, name)]
    if missing:
        raise UnreadableError(f"--{missing[0]} is missing; for example: --engine vllm --version 0.33.0")
    with _opened(args.file) as stream:
        text = _decoded(stream.read(SIZE + 1))
    given = {"engine": args.engine, "version": args.version, "options": as_options(text), "gpus": args.gpu}
    one = question({**given, "model": args.model, "draft": args.draft})
    found = findings(one)
    print("\n".join(_in_words(one, found)) if not args.json else json.dumps(answer(one, found)))
    return _status(found)


def _opened(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise UnreadableError(f"{name} cannot be read: {error.strerror}") from None


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number in range(1, sys.maxsize):
        row = stream.readline(SIZE + 1)
        if not row:
            return
        if row.strip():
            yield number, row
        if len(row) > SIZE:
            return


def _decoded(raw: bytes) -> str:
    if len(raw) > SIZE:
        raise UnreadableError(f"more than {SIZE >> 20} MiB, and no options are")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None


def _answered(numbered: tuple[int, bytes]) -> int:
    """Print the answer to one line of a batch; returns its exit status."""
    number, raw = numbered
    try:
        one = _of_line(_decoded(raw))
        found = findings(one)
    except UnreadableError as error:
        print(json.dumps({"line": number, "error": str(error)}), flush=True)
        return UNREADABLE
    print(json.dumps({"line": number, **answer(one, found)}), flush=True)
    return _status(found)


def _of_line(text: str) -> Question:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"not JSON: {error}") from None
    if not isinstance(given, dict):
        raise UnreadableError("a line is an object with engine, version and options")
    return question(given)


def findings(one: Question) -> list[Finding]:
    """Return what is wrong, without what only a file that Rackwright starts with has wrong."""
    found = check_serving(one.serving, one.gpus, judge=DECIDES)
    return [each for each in found if each.text != GIVEN and not (one.by_words and each.code == IN_FILE)]


def answer(one: Question, found: list[Finding]) -> dict[str, Any]:
    """Return the answer as JSON has it."""
    return {
        "engine": one.serving.engine_kind,
        "version": one.serving.version,
        "data": used().version,
        "refused": _count(found, Level.REFUSE),
        "findings": [_as_json(each) for each in found],
    }


def _as_json(found: Finding) -> dict[str, Any]:
    path = list(_path(found))
    values = {"code": found.code, "path": path, "key": dotted(path), "text": found.sentence}
    more = {"near": found.near, "link": found.link, "engine_says": found.words}
    return {"level": found.level.value, **values, **{key: value for key, value in more.items() if value}}


def _path(found: Finding) -> tuple[str | int, ...]:
    """Return the path below the options."""
    return found.path[1:] if found.path[:1] == ("engine",) else found.path


def _in_words(one: Question, found: list[Finding]) -> Iterator[str]:
    for each in found:
        path = dotted(_path(each))
        yield _line(f"{each.level.value} {each.code} {path}{': ' if path else ''}{each.sentence}")
    counts = f"{_count(found, Level.REFUSE)} refused, {_count(found, Level.WARN)} warnings"
    product = f"{PRODUCTS[one.serving.engine_kind]} {one.serving.version}"
    yield f"{product}: {counts}; data of {used().version}"


def _count(found: list[Finding], level: Level) -> int:
    return sum(each.level is level for each in found)


def _status(found: list[Finding]) -> int:
    return REFUSED if _count(found, Level.REFUSE) else FINE


def _line(text: str) -> str:
    """Return a text as one line without control characters."""
    return "".join(char if char.isprintable() else " " for char in text)
