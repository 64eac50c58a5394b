"""Walk the engine's own classes, and print the options that it accepts. Runs alone inside a serving image.

`python3 - KIND`. The only line of standard output is JSON: the engine's version, and its options as sections of keys;
or `why` it could not be walked. A value without an exact type here is `any`.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import importlib
import importlib.util
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from rackwright.concerns.options.host.in_image import VLLM_PARSERS, first, leave, real_output

Json = dict[str, Any]
BOUNDS = ("gt", "ge", "lt", "le")
PLAIN = {bool: "bool", int: "int", float: "float", str: "str"}
LISTS = {(list, int): "list[int]", (list, float): "list[float]", (set, int): "set[int]"}
TAG = "decoding_type"


class PydanticModels:
    """pydantic's models, from a root downward: sections by class name, and unions by their key."""

    def __init__(self, root: Any) -> None:
        self.sections: Json = {}
        self.unions: Json = {}
        self.lenient: list[str] = []
        self.tags = {TAG}
        """Fields that only hold the kind of a section."""
        self.section(root)

    def section(self, model: Any) -> str:
        """Walk a model, once; return its section's name."""
        name = str(model.__name__)
        if name not in self.sections:
            self.sections[name] = {}
            if model.model_config.get("extra") != "forbid":
                self.lenient.append(name)
            for field, info in model.model_fields.items():
                if field not in self.tags:
                    self.sections[name].update(dict.fromkeys(_names(field, info), self.key(field, info)))
        return name

    def key(self, field: str, info: Any) -> Json:
        """Return type, default, values and bounds of one field."""
        parts, metadata = _parts(info.annotation)
        bounds = {
            bound: getattr(limit, bound)
            for limit in (*info.metadata, *metadata)
            for bound in BOUNDS
            if isinstance(getattr(limit, bound, None), int | float)
        }
        tag = getattr(info, "discriminator", None) or next(
            (one.discriminator for one in metadata if isinstance(getattr(one, "discriminator", None), str)), None
        )
        found = self._type(field, parts, tag if isinstance(tag, str) else None, info.default_factory)
        if type(None) in parts and found["type"] != "any":
            found["type"] += "?"
        return {**found, **({} if found["type"].startswith("any") else bounds), **_default(info)}

    def _type(self, field: str, parts: list[Any], tag: str | None, made: Any) -> Json:
        present = [part for part in parts if part is not type(None)]
        models = [one for part in present for one in _concrete(part)]
        if models and len(models) >= len(present):
            if tag is None and len(models) == 1:
                # A class with only a tag represents others, which its validators find.
                bare = not set(models[0].model_fields) - {TAG}
                return {"type": "mapping" if bare else self.section(models[0])}
            return self._union(field, models, tag or TAG, made)
        found = [_plain(part) for part in present]
        return found[0] if len(found) == 1 else {"type": "any"}

    def _union(self, field: str, models: list[Any], tag: str, made: Any) -> Json:
        """Return a choice by `tag`; a class whose value the engine makes itself is the choice without a tag."""
        self.tags.add(tag)
        kinds = {name: self.section(model) for model in models for name in _tags(model, tag)}
        if not kinds:
            return {"type": "any"}
        usual = _tags(made, tag) if _is_model(made) else []
        self.unions[f"union of {field}"] = {"tag": tag, "kinds": kinds, **({"otherwise": usual[0]} if usual else {})}
        return {"type": f"union of {field}"}


def _names(field: str, info: Any) -> list[str]:
    """Return every name under which a field is read from a file."""
    alias = info.validation_alias or info.alias
    choices = [str(one) for one in getattr(alias, "choices", [alias or field]) if isinstance(one, str)]
    return [name for name in choices or [field] if not name.startswith("_")]


def _parts(annotation: Any) -> tuple[list[Any], list[Any]]:
    """Return the types of a union, however it is nested, and the metadata of Annotated."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        parts, metadata = _parts(inside[0])
        return parts, [*metadata, *inside[1:]]
    if origin in (typing.Union, types.UnionType):
        found = [_parts(one) for one in inside]
        return [part for parts, _ in found for part in parts], [one for _, metadata in found for one in metadata]
    return [annotation], []


def _is_model(part: Any) -> bool:
    return isinstance(part, type) and hasattr(part, "model_fields")


def _concrete(part: Any) -> list[Any]:
    """Return a model; for a base of many, those with their own tag."""
    if not _is_model(part):
        return []
    below = [one for sub in part.__subclasses__() for one in _concrete(sub)]
    return [part, *below] if _tags(part, TAG) or not below else below


def _tags(model: Any, tag: str) -> list[str]:
    """Return the tags of one kind: those of its Literal, or its name, with and without the underscore as in files."""
    field = model.model_fields.get(tag)
    if field is not None:
        return [str(one) for one in typing.get_args(field.annotation)]
    name = getattr(model, tag, None)
    return list(dict.fromkeys((name, name.replace("_", "")))) if isinstance(name, str) else []


def _plain(part: Any) -> Json:
    origin, inside = typing.get_origin(part), typing.get_args(part)
    if part in PLAIN:
        return {"type": PLAIN[part]}
    if origin is typing.Literal and all(isinstance(one, str) for one in inside):
        return {"type": "str", "values": list(inside)}
    if isinstance(part, type) and issubclass(part, enum.Enum) and all(isinstance(one.value, str) for one in part):
        return {"type": "str", "values": [one.value for one in part]}
    if origin in (list, set) and (origin, inside[0]) in LISTS:
        return {"type": LISTS[origin, inside[0]]}
    return {"type": "mapping" if dict in (origin, part) else "any"}


def _default(info: Any) -> Json:
    default = info.default.value if isinstance(info.default, enum.Enum) else info.default
    plain = default is None or isinstance(default, bool | int | float | str)
    return {"default": default} if plain and info.default_factory is None else {}


def _source(module: str) -> ast.Module:
    """Parse a module's text without running it; empty where it is missing."""
    try:
        found = importlib.util.find_spec(module)
        return ast.parse(Path(str(found and found.origin)).read_text(encoding="utf-8"))
    except (ImportError, OSError, ValueError, SyntaxError):
        return ast.Module([], [])


def _popped(tree: ast.AST) -> Iterator[str]:
    """Yield the keys that are removed from a mapping with a name like `llm_args`."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "pop":
            mapping, key = call.func.value, call.args[0] if call.args else None
            if isinstance(mapping, ast.Name) and "llm_args" in mapping.id and isinstance(key, ast.Constant):
                yield str(key.value)


def taken_by_serve() -> list[str]:
    """Return the keys that trtllm-serve removes from its file itself: the class has no fields of these names."""
    serve = _source("tensorrt_llm.commands.serve")
    merge = [
        node
        for node in _source("tensorrt_llm.llmapi.llm_args").body
        if isinstance(node, ast.FunctionDef) and node.name == "update_llm_args_with_extra_dict"
    ]
    return list(dict.fromkeys(key for tree in (serve, *merge) for key in _popped(tree)))


def walk_trtllm() -> Json:
    """Walk TensorRT-LLM: the strict class that its file becomes."""
    root = first("tensorrt_llm.llmapi.llm_args:TorchLlmArgs", "tensorrt_llm.llmapi:TorchLlmArgs")
    models = PydanticModels(root)
    keys = models.sections[root.__name__]
    models.sections[root.__name__] = {**{key: {"type": "any"} for key in taken_by_serve()}, **keys}
    models.sections[root.__name__].get("model", {})["given"] = True
    discriminated = any(getattr(field, "discriminator", None) for field in root.model_fields.values())
    decoding = "discriminated" if discriminated or models.unions else "typed"
    return {
        "version": str(first("tensorrt_llm:__version__")),
        "decoding": decoding,
        "lenient": models.lenient,
        "sections": models.sections,
        "unions": models.unions,
    }


def walk_vllm() -> Json:
    """Walk vLLM: its parser, and the classes of its JSON values."""
    parser_class = first("vllm.utils.argparse_utils:FlexibleArgumentParser", "vllm.utils:FlexibleArgumentParser")
    fill = first(*VLLM_PARSERS)
    return {"version": str(first("vllm:__version__")), **_parser(fill(parser_class()), _configs("vllm.config"))}


def walk_sglang() -> Json:
    """Walk SGLang: its parser."""
    parser = argparse.ArgumentParser(add_help=False)
    first("sglang.srt.server_args:ServerArgs").add_cli_args(parser)
    return {"version": str(first("sglang:__version__", "sglang.version:__version__")), **_parser(parser, {})}


def _configs(module: str) -> dict[str, Any]:
    """Return the dataclasses of a module by their names in small letters."""
    try:
        inside = vars(importlib.import_module(module))
    except ImportError:
        return {}
    return {name.lower(): one for name, one in inside.items() if dataclasses.is_dataclass(one)}


def _parser(parser: argparse.ArgumentParser, configs: dict[str, Any]) -> Json:
    """Return the options of a command line, and below them the fields of those that take JSON."""
    sections: Json = {"Serve": {}}
    for action in parser._actions:
        longs = [name for name in action.option_strings if name.startswith("--") and not name.startswith("--no-")]
        if longs and not isinstance(action, argparse._HelpAction):
            config = configs.get(action.dest.replace("_", ""))
            section = _dataclass(config, sections) if config else ""
            sections["Serve"][longs[0][2:]] = _option(action, longs, section)
    return {"decoding": "typed", "lenient": [], "sections": sections, "unions": {}}


def _option(action: argparse.Action, longs: list[str], section: str) -> Json:
    found: Json = {"type": section or _word(action)}
    others = [name for name in action.option_strings if name != longs[0] and not name.startswith("--no-")]
    if others:
        found["names"] = others
    if action.choices and not section and all(isinstance(one, str) for one in action.choices):
        found["values"] = list(action.choices)
    if action.default is None or isinstance(action.default, bool | int | float | str):
        found["default"] = action.default
    if action.dest in ("model", "model_path", "config"):
        found["given"] = True
    return found


def _word(action: argparse.Action) -> str:
    """Return the type of an option's value, as far as its parser shows it."""
    if action.nargs == 0 or "Boolean" in type(action).__name__:
        return "bool"
    if action.nargs is not None:
        return "any"
    if action.type in PLAIN and action.type is not bool:
        return f"{PLAIN[action.type]}?" if action.default is None else PLAIN[action.type]
    if action.type is None:
        return "str?" if action.default is None else "str"
    return "size" if "human_readable_int" in getattr(action.type, "__name__", "") else "any"


def _dataclass(config: Any, sections: Json) -> str:
    name = str(config.__name__)
    if name not in sections:
        sections[name] = {}
        named = {one.__name__: one for one in _below(config)}
        for field in dataclasses.fields(config):
            inner = next((one for class_name, one in named.items() if class_name in str(field.type)), None)
            sections[name][field.name] = {"type": _dataclass(inner, sections) if inner else "any"}
    return name


def _below(config: Any) -> Iterator[Any]:
    """Yield the dataclasses of the same module that a dataclass may hold."""
    for one in vars(sys.modules[config.__module__]).values():
        if isinstance(one, type) and dataclasses.is_dataclass(one) and one is not config:
            yield one


WALKERS: dict[str, Callable[[], Json]] = {"tensorrt-llm": walk_trtllm, "vllm": walk_vllm, "sglang": walk_sglang}


def answer(kind: str) -> Json:
    """Return the options that the image accepts, or why it could not be walked."""
    try:
        return WALKERS[kind]()
    except Exception as error:  # an engine may fail with anything
        return {"why": f"{type(error).__name__}: {error}".splitlines()[0][:500]}


def main(kind: str) -> NoReturn:
    """Print the answer on the real standard output."""
    out = real_output()
    leave(out, json.dumps(answer(kind), sort_keys=False))


if __name__ == "__main__":
    main(sys.argv[1])
