"""The command line of `vllm serve`, and the file that `--config` names: its keys are flags, and are read as such."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ..common import flags as data
from .flags import ENGINE, FRONTEND

_FLAG_NAME = re.compile(r"--[^.=]*")
_DOTTED = re.compile(r"--[a-z-]+(\.[A-Za-z0-9_]+)+")


class FlexibleArgumentParser(argparse.ArgumentParser):
    """Takes underscores for dashes in flags, and reads `--config FILE` in place of flags."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    # argparse declares this twice, with and without the namespace's type.
    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Return the parsed flags; those of the command line win over those of the file."""
        words = list(args or ())
        if words.count("--config") > 1:
            raise AssertionError("More than one config file specified!")
        if "--config" in words:
            words = self._with_file(words)
        return super().parse_args(_undotted([_dashed(argument) for argument in words]), namespace)

    def _with_file(self, words: list[str]) -> list[str]:
        at = words.index("--config")
        if at == len(words) - 1:
            raise ValueError("No config file specified! Please check your command-line arguments.")
        options, model = config_words(Path(words[at + 1])), []
        others = words[:at] + words[at + 2 :]
        if others and not others[0].startswith("-"):
            model, others = others[:1], others[1:]
        return [*model, *options, *others]


def _dashed(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    return _FLAG_NAME.sub(lambda found: found[0].replace("_", "-"), argument, count=1)


def _undotted(words: list[str]) -> list[str]:
    """`--section.key VALUE`, and with an equals sign, as part of one `--section JSON` at the end."""
    plain: list[str] = []
    sections: dict[str, dict[str, Any]] = {}
    remaining = iter(words)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if not _DOTTED.fullmatch(name):
            plain.append(argument)
            continue
        flag, *path = name.split(".")
        _put(sections.setdefault(flag, {}), path, value if equals else next(remaining, ""))
    return [*plain, *(part for flag, found in sections.items() for part in (flag, json.dumps(found)))]


def _put(section: dict[str, Any], path: list[str], text: str) -> None:
    *above, last = path
    for name in above:
        section = section.setdefault(name, {})
    try:
        section[last] = json.loads(text)
    except ValueError:
        section[last] = text


def config_words(file: Path) -> list[str]:
    """Return a file's keys as flags; a switch that is false is left out, a section must be JSON text.

    Raises ValueError when it is no YAML file, and what reading it fails with.
    """
    if file.suffix not in (".yaml", ".yml"):
        raise ValueError(f"Config file must be of a yaml/yml type. {file.suffix.removeprefix('.')} supplied")
    words: list[str] = []
    for key, value in yaml.safe_load(file.read_text(encoding="utf-8")).items():
        if value is False:
            continue
        items = [] if value is True else value if isinstance(value, list) else [value]
        words += [f"--{key}", *(str(item) for item in items)]
    return words


def make_arg_parser(parser: FlexibleArgumentParser) -> FlexibleArgumentParser:
    """Give a parser everything that `vllm serve` takes."""
    parser.add_argument("model_tag", type=str, nargs="?")
    parser.add_argument("--model", type=str, default="Qwen/Qwen3-0.6B")
    parser.add_argument("--config", type=str)
    data.add(parser, FRONTEND)
    data.add(parser, ENGINE)
    return parser


def validate_parsed_serve_args(args: argparse.Namespace) -> None:
    """Raise TypeError for flags that need each other."""
    if args.enable_auto_tool_choice and not args.tool_call_parser:
        raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")
