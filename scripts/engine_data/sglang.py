"""The options of SGLang's server, as `ServerArgs` and the namespaces beside it say them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rackwright.engines.options.schema import Json
from rackwright.messages import SettingsError
from scripts.engine_data.tree import UNKNOWN, Tree, calls, fields, keywords, members, type_name

ROOT = "Server"
FILES = ("sglang/srt/server_args.py", "sglang/srt/arg_groups/**/*.py")
LOADERS = ("sglang/srt/server_args_config_parser.py", "sglang/srt/utils/server_args_config_parser.py")
LEFT_OUT = frozenset({"config", "help"})
SCALARS = {"int": "int", "float": "float", "str": "str", "bool": "bool", "json_list_type": "any"}
WORDS = ("choices", "default", "type", "action", "nargs")


def read(folder: Path) -> Tree:
    """The sources of one version. Raises SettingsError when ServerArgs is not where it should be."""
    tree = Tree(folder).read(*FILES)
    if "ServerArgs" not in tree.classes:
        raise SettingsError(f"{folder}: no class ServerArgs in {FILES[0]}: has SGLang moved it?")
    return tree


def line_of(tree: Tree, version: str) -> Json:
    """The whole data of a version."""
    loader = "".join((tree.root / name).read_text() for name in LOADERS if (tree.root / name).is_file())
    return {
        "versions": [version],
        "mappings": "isinstance(value, dict)" in loader,
        "picky": "unsupported_actions" in loader,
        "sections": {ROOT: {**dict(_declared(tree)), **dict(_added(tree))}},
    }


def _declared(tree: Tree) -> Iterator[tuple[str, Json]]:
    """Fields that are annotated as `A[type, help]` or `A[type, Arg(...)]`."""
    for file, node in tree.classes.values():
        for name, (annotation, default) in fields(node):
            if isinstance(annotation, ast.Subscript) and type_name(annotation) in ("A", "Annotated"):
                yield from _annotated(tree, file, name, annotation, default)


def _annotated(
    tree: Tree, file: str, name: str, annotation: ast.Subscript, default: ast.expr | None
) -> Iterator[tuple[str, Json]]:
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
    args = [part for part in parts[1:] if isinstance(part, ast.Call) and type_name(part.func) == "Arg"]
    words = dict(keywords(args[0])) if args else {}
    helped = args or any(isinstance(part, ast.Constant | ast.JoinedStr | ast.BinOp) for part in parts[1:])
    if not helped or tree.literal(words.get("no_cli")) is True:
        return
    own = tree.literal(words.get("cli_name"))
    aliases = tree.literal(words.get("aliases"))
    flags = [own if isinstance(own, str) else f"--{name.replace('_', '-')}"]
    flags += aliases if isinstance(aliases, list) else []
    told = _kind(tree, parts[0], words) | _choices(tree, words.get("choices")) | _default(tree, default)
    yield from _keyed(flags, {**told, "in": file})


def _kind(tree: Tree, annotation: ast.expr, words: dict[str, ast.expr]) -> Json:
    if "action" in words:
        return {"type": "any", **_by_action(ast.unparse(words["action"]))}
    if "type_parser" in words:
        human = "human_readable_int" in ast.unparse(words["type_parser"])
        return {"type": "size" if human else "any"}
    every = members(annotation)
    kinds = [type_name(one) for one in every if type_name(one) != "None"]
    if kinds == ["Literal"]:
        inner = next(one for one in every if isinstance(one, ast.Subscript))
        return _choices(tree, inner.slice) | {"type": "str"}
    return {"type": SCALARS.get(kinds[0], "any") if len(kinds) == 1 and "nargs" not in words else "any"}


def _added(tree: Tree) -> Iterator[tuple[str, Json]]:
    """What `ServerArgs.add_cli_args` registers by hand."""
    file, node = tree.classes["ServerArgs"]
    scopes = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "add_cli_args"]
    for call in (call for scope in scopes for call in calls(scope, "add_argument")):
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        words = dict(keywords(call))
        told = _argument(words) | _choices(tree, words.get("choices")) | _default(tree, words.get("default"))
        yield from _keyed([str(flag) for flag in flags], {**told, "in": file})


def _argument(words: dict[str, ast.expr]) -> Json:
    if "action" in words:
        return {"type": "any", **_by_action(ast.unparse(words["action"]))}
    kind = type_name(words["type"]) if "type" in words else "str"
    if "human_readable_int" in ast.unparse(words.get("type", ast.Constant(0))):
        return {"type": "size"}
    return {"type": SCALARS.get(kind, "any") if "nargs" not in words else "any"}


def _by_action(action: str) -> Json:
    if "store_true" in action and "Deprecated" not in action:
        return {"type": "bool"}
    return {"type": "any", "unfit": True} if action[-6:] != "store'" else {}


def _choices(tree: Tree, node: ast.expr | None) -> Json:
    values: Any = tree.literal(node)
    return {"values": sorted(map(str, values))} if isinstance(values, list) and values else {}


def _default(tree: Tree, node: ast.expr | None) -> Json:
    value = tree.literal(node)
    plain = isinstance(value, str | int | float | bool | None) and value is not UNKNOWN
    return {"default": value} if plain else {}


def _keyed(flags: list[str], told: Json) -> Iterator[tuple[str, Json]]:
    """The option by its longest long name, which stays the same over the versions."""
    long = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
    if not long or set(long) & LEFT_OUT:
        return
    name = max(long, key=len)
    others = [flag for flag in flags if flag != f"--{name}"]
    yield name, {**told, **({"names": others} if others else {})}
