"""The options of SGLang's server, as `ServerArgs` and the namespaces beside it say them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rackwright.messages import SettingsError
from rackwright_engines.options.schema import Json
from scripts.engine_data.tree import UNKNOWN, Tree, assigned, calls, fields, keywords, members, type_name

ROOT = "Server"
FILES = ("sglang/srt/server_args.py", "sglang/srt/arg_groups/**/*.py")
VALUES = (
    "sglang/srt/speculative/spec_info.py",
    "sglang/srt/speculative/spec_registry.py",
    "sglang/srt/function_call/*parser*.py",
    "sglang/srt/parser/reasoning_parser*.py",
    "sglang/srt/model_executor/cuda_graph_config.py",
)
"""Files that name values which the parser's choices are made of."""
DRAFTING = "speculative-algorithm"
JSON = frozenset({"json-model-override-args"})
"""Plain texts for the parser, which SGLang reads as JSON later."""
NEXTN = "NEXTN"
"""Means EAGLE, which the enum lacks."""
GROWING = frozenset({"sampling-backend", "tool-call-parser", "reasoning-parser"})
"""Options whose values a plugin adds to, at versions that load plugins."""
PLUGINS = "sglang/srt/plugins"
LOADERS = ("sglang/srt/server_args_config_parser.py", "sglang/srt/utils/server_args_config_parser.py")
LEFT_OUT = frozenset({"config", "help"})
SCALARS = {"int": "int", "float": "float", "str": "str", "bool": "bool", "json_list_type": "any"}
NOTHING: Mapping[str, ast.expr] = MappingProxyType({})
WORDS = ("choices", "default", "type", "action", "nargs")


def read(folder: Path) -> Tree:
    """Return the sources of one version. Raises SettingsError when ServerArgs is not where it should be."""
    tree = Tree(folder).read(*FILES)
    if "ServerArgs" not in tree.classes:
        raise SettingsError(f"{folder}: no class ServerArgs in {FILES[0]}: has SGLang moved it?")
    tree.borrow(Tree(folder).read(*VALUES))
    return tree


def line_of(tree: Tree, version: str) -> Json:
    """Return the whole data of a version."""
    loader = "".join((tree.root / name).read_text() for name in LOADERS if (tree.root / name).is_file())
    return {
        "versions": [version],
        "mappings": "isinstance(value, dict)" in loader,
        "picky": "unsupported_actions" in loader,
        "sections": {ROOT: _aliased(_grown(tree, {**dict(_declared(tree)), **dict(_added(tree))}))},
    }


def _grown(tree: Tree, keys: Json) -> Json:
    """Return the options with the values that an enum names, and with `more` where plugins add to them."""
    growing = set(GROWING) if (tree.root / PLUGINS).is_dir() else set()
    if "values" not in keys[DRAFTING]:
        names = [name for name, _ in assigned(tree.classes["SpeculativeAlgorithm"][1].body) if name[0] != "_"]
        keys[DRAFTING] = {**keys[DRAFTING], "values": sorted({*names, NEXTN}), "fold": "upper"}
        growing.add(DRAFTING)
    typed = {name: {**facts, "type": "json"} if name in JSON else facts for name, facts in keys.items()}
    return {name: {**facts, "more": True} if name in growing else facts for name, facts in typed.items()}


def _aliased(keys: Json) -> Json:
    """Give old names what the new one takes, where the parser has no list for them."""
    new = {name: keys.get(facts.pop("new", ""), {}).get("values") for name, facts in keys.items()}
    lost = {name: values for name, values in new.items() if values and "values" not in keys[name]}
    return {
        name: {**facts, "values": lost[name], "more": True} if name in lost else facts for name, facts in keys.items()
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
    stated = tree.literal(words.get("cli_name"))
    aliases = tree.literal(words.get("aliases"))
    flags = [stated if isinstance(stated, str) else f"--{name.replace('_', '-')}"]
    flags += aliases if isinstance(aliases, list) else []
    entry = _kind(tree, parts[0], words) | _choices(tree, words.get("choices")) | _default(tree, default)
    yield from _keyed(flags, {**entry, "in": file})


def _kind(tree: Tree, annotation: ast.expr, words: dict[str, ast.expr]) -> Json:
    if "action" in words:
        return {"type": "any", **_by_action(ast.unparse(words["action"]))}
    if "type_parser" in words:
        human = "human_readable_int" in ast.unparse(words["type_parser"])
        return {"type": "size"} if human else {"type": "any"} | _literal(tree, annotation)
    every = members(annotation)
    kinds = [type_name(one) for one in every if type_name(one) != "None"]
    if kinds == ["Literal"]:
        return _literal(tree, annotation) | {"type": "str"}
    return {"type": SCALARS.get(kinds[0], "any") if len(kinds) == 1 and "nargs" not in words else "any"}


def _literal(tree: Tree, annotation: ast.expr) -> Json:
    """Return the values of a `Literal` in a type."""
    inner = [one for one in members(annotation) if type_name(one) == "Literal" and isinstance(one, ast.Subscript)]
    return _choices(tree, inner[0].slice) if inner else {}


def _added(tree: Tree) -> Iterator[tuple[str, Json]]:
    """Yield what `ServerArgs.add_cli_args` registers by hand."""
    file, node = tree.classes["ServerArgs"]
    scopes = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "add_cli_args"]
    local = {name: value for scope in scopes for name, value in assigned(scope.body)}
    for call in (call for scope in scopes for call in calls(scope, "add_argument")):
        flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        words = dict(keywords(call))
        entry = _argument(words) | _choices(tree, words.get("choices"), local) | _default(tree, words.get("default"))
        yield from _keyed([str(flag) for flag in flags], {**entry, "in": file})


def _argument(words: dict[str, ast.expr]) -> Json:
    if "action" in words:
        new = words.get("new_flag")
        alias = {"new": str(new.value).removeprefix("--")} if isinstance(new, ast.Constant) else {}
        return {"type": "any", **_by_action(ast.unparse(words["action"])), **alias}
    kind = type_name(words["type"]) if "type" in words else "str"
    if "human_readable_int" in ast.unparse(words.get("type", ast.Constant(0))):
        return {"type": "size"}
    return {"type": SCALARS.get(kind, "any") if "nargs" not in words else "any"}


def _by_action(action: str) -> Json:
    if "store_true" in action and "Deprecated" not in action:
        return {"type": "bool"}
    return {"type": "any", "unfit": True} if action[-6:] != "store'" else {}


def _choices(tree: Tree, node: ast.expr | None, local: Mapping[str, ast.expr] = NOTHING) -> Json:
    values: Any = _members_of(tree, node, local)
    return {"values": sorted(set(map(str, values)))} if isinstance(values, list) and values else {}


def _members_of(tree: Tree, node: ast.expr | None, local: Mapping[str, ast.expr]) -> Any:
    """Return a list of constants as `literal` finds it, and through `list(...)`, `set(...)`, `+`, a table's keys."""
    if isinstance(node, ast.Name):
        meant = local.get(node.id, tree.names.get(node.id))
        return tree.literal(node) if meant is None else _members_of(tree, meant, local)
    if isinstance(node, ast.Dict):
        return [tree.literal(key) for key in node.keys]
    if isinstance(node, ast.BinOp):
        parts = [_members_of(tree, side, local) for side in (node.left, node.right)]
        return parts[0] + parts[1] if all(isinstance(part, list) for part in parts) else UNKNOWN
    if isinstance(node, ast.Call) and type_name(node.func) in ("list", "set", "sorted", "frozenset") and node.args:
        return _members_of(tree, node.args[0], local)
    if isinstance(node, ast.Call):
        return _members_of(tree, _called(tree, node), local)
    if isinstance(node, ast.Attribute) and type_name(node.value) in tree.classes:
        inside = dict(assigned(tree.classes[type_name(node.value)][1].body))
        return _members_of(tree, inside.get(node.attr), {**inside, **local})
    return tree.literal(node)


def _called(tree: Tree, call: ast.Call) -> ast.expr | None:
    """Return what `TABLE.keys()` is called on, or what a function of the parser's file returns last."""
    if isinstance(call.func, ast.Attribute):
        return call.func.value if call.func.attr == "keys" else None
    functions = [one for module in tree.modules.values() for one in module.body if isinstance(one, ast.FunctionDef)]
    body = [one.body[-1] for one in functions if one.name == type_name(call.func)]
    return body[0].value if body and isinstance(body[0], ast.Return) else None


def _default(tree: Tree, node: ast.expr | None) -> Json:
    value = tree.literal(node)
    plain = isinstance(value, str | int | float | bool | None) and value is not UNKNOWN
    return {"default": value} if plain else {}


def _keyed(flags: list[str], entry: Json) -> Iterator[tuple[str, Json]]:
    """Yield the option by its longest long name, which stays the same over the versions."""
    long = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
    if not long or set(long) & LEFT_OUT:
        return
    name = max(long, key=len)
    others = [flag for flag in flags if flag != f"--{name}"]
    yield name, {**entry, **({"names": others} if others else {})}
