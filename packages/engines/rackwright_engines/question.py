"""Reads what anybody asks: options as YAML, as JSON or as a command line, of one engine or of many."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import yaml

from rackwright_engines.nearest import nearest
from rackwright_engines.options.commandline import number, spelled
from rackwright_engines.options.schema import VersionLine, line_for
from rackwright_engines.quick_yaml import load_foreign_yaml
from rackwright_engines.serving import EngineKind, NamedModel, PlainGpus, PlainServing
from rackwright_engines.version import bare

ENGINES: tuple[EngineKind, ...] = get_args(EngineKind)
PROGRAMS = frozenset({"vllm", "sglang", "python", "python3", "trtllm-serve", "tensorrt_llm"})
"""Words that begin a command line; so does an option."""
KEYS = frozenset({"engine", "version", "options", "environment", "model", "draft", "gpus", "hosts", "image"})
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
ATTACHED = re.compile(r"-[A-Za-z]\d+")
"""`-O3`: a short option and its value in one token."""
LEVEL = {"-O": "--optimization-level"}
"""vLLM's reading of a short option with its value (vllm/utils/argparse_utils.py)."""
FRACTION = re.compile(r"-?\d+\.\d*(?:[eE][+-]?\d+)?")


class UnreadableError(ValueError):
    """Input that cannot be understood; the text says why, and what to write."""


@dataclass(frozen=True)
class Question:
    """An engine with its options, its GPUs, and whether the options are words of a command line."""

    serving: PlainServing
    gpus: PlainGpus
    by_words: bool = False


def question(given: Mapping[str, Any]) -> Question:
    """Return a question from its keys, as a line of a batch has them. Raises UnreadableError."""
    strange = sorted(str(key) for key in given.keys() - KEYS)
    if strange:
        raise UnreadableError(f"{strange[0]} is not a key of a question{nearest(strange[0], KEYS)}")
    engine, version = given.get("engine"), str(given.get("version") or "")
    if engine not in ENGINES:
        raise UnreadableError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    if not VERSION.fullmatch(version):
        raise UnreadableError(f"version must be one as 0.33.0, or an image's tag, not {version!r}")
    version_line = line_for(engine, bare(version))[0]
    options, words = _options(given.get("options", {}), version_line)
    environment = given.get("environment", {})
    if not isinstance(environment, Mapping):
        raise UnreadableError("environment must be a mapping of variables")
    hosts = given.get("hosts", 1)
    if not isinstance(hosts, int) or isinstance(hosts, bool) or hosts < 1:
        raise UnreadableError(f"hosts must be a number of at least 1, not {hosts!r}")
    model, draft, image = (_text(given, key) for key in ("model", "draft", "image"))
    serving = PlainServing(
        engine_kind=engine,
        version=version,
        engine=options,
        arguments=words if engine == "tensorrt-llm" else (),
        environment={str(key): str(value) for key, value in environment.items()},
        model=NamedModel(model) if model else None,
        draft=NamedModel(draft) if draft else None,
        image=image,
        size=hosts,
    )
    return Question(serving, PlainGpus(_names(given.get("gpus", ()))), bool(words))


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UnreadableError(f"{key} must be text, not {value!r}")
    return value


def _names(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise UnreadableError("gpus must be a GPU's name, or a list of names")
    return tuple(names)


def _options(value: Any, version_line: VersionLine) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return options by name, and the words that they come from, if they are a command line."""
    if isinstance(value, str):
        value = as_options(value)
    if isinstance(value, Mapping):
        return {str(name): below for name, below in value.items()}, ()
    if not isinstance(value, list) or not all(isinstance(token, str) for token in value):
        raise UnreadableError("options must be a mapping, a command line, or a list of its words")
    words = _without_python(value)
    return ({} if version_line.engine == "tensorrt-llm" else dict(_by_name(words, version_line))), words


def _without_python(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words behind `python -m MODULE`."""
    is_module = len(words) > 1 and words[0].rpartition("/")[2].startswith("python") and words[1] == "-m"
    return tuple(words[3:] if is_module else words)


def as_options(text: str) -> Any:
    """Return a mapping from YAML or JSON, or the words of a command line. Raises UnreadableError."""
    plain = text.strip()
    try:
        if _is_command(plain):
            return shlex.split(re.sub(r"\\\r?\n", " ", plain), comments=True)
        found = json.loads(plain) if plain.startswith("{") else load_foreign_yaml(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableError(f"neither YAML, JSON nor a command line: {why}") from None
    if found is None:
        return {}
    if not isinstance(found, dict | list):
        raise UnreadableError("no options: write `key: value` lines, JSON, or a command line as vllm serve ...")
    return found


def _is_command(text: str) -> bool:
    """Return True if the first token is a program of an engine, or an option."""
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    first = rows[0].split()[0] if rows else ""
    return first.rpartition("/")[2] in PROGRAMS or bool(re.match(r"--?[A-Za-z]", first))


def _by_name(words: Sequence[str], version_line: VersionLine) -> Iterator[tuple[str, Any]]:
    """Yield the options of a command line. Words before the first one are the program and its model."""
    index = 0
    while index < len(words):
        token, index = words[index], index + 1
        if not _is_option(token):
            continue
        name, is_, value = token.partition("=")
        if ATTACHED.fullmatch(token) and spelled(version_line, name) is None:
            name, is_, value = LEVEL.get(token[:2], token[:2]), "=", token[2:]
        meant = spelled(version_line, name)
        behind: list[str] = [value] if is_ else []
        while not is_ and (meant is None or meant.key.type != "bool") and index < len(words):
            if _is_option(words[index]):
                break
            behind.append(words[index])
            index += 1
        values = [_value(one) for one in behind]
        yield name.lstrip("-"), values[0] if len(values) == 1 else values or True


def _is_option(token: str) -> bool:
    return token.startswith("-") and number(token) is None and not FRACTION.fullmatch(token)


def _value(token: str) -> Any:
    """Return a number where a token is one."""
    if re.fullmatch(r"-?\d{1,18}", token):
        return int(token)
    return float(token) if FRACTION.fullmatch(token) else token
