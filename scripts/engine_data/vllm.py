"""The options of `vllm serve`, as its config classes and its parser say them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.messages import SettingsError
from rackwright_engines.options.schema import Json
from scripts.engine_data import vllm_values as values
from scripts.engine_data.tree import UNKNOWN, Tree, calls, fields, keywords, members, type_name

ROOT = "Serve"
FILES = (
    "vllm/engine/arg_utils.py",
    "vllm/config/*.py",
    "vllm/config.py",
    "vllm/entrypoints/**/cli_args.py",
    "vllm/entrypoints/cli/serve.py",
    "vllm/utils/argparse_utils.py",
    "vllm/utils/__init__.py",
)
JSON_CLASSES = {"speculative-config": "SpeculativeConfig"}
"""Options whose parser takes any mapping, which another class reads later."""
FILLED = frozenset({"target_model_config", "target_parallel_config", "draft_model_config", "draft_parallel_config"})
"""Fields of SpeculativeConfig that the engine fills itself."""
LEFT_OUT = frozenset({"config", "help"})
"""A file cannot name another file."""
BOUNDS = ("gt", "ge", "lt", "le")
SCALARS = {"int": "int", "float": "float", "str": "str", "bool": "bool"}


@dataclass
class Source:
    """The tree, with what the parser adds to types."""

    tree: Tree
    apart: Tree
    """Files that only name values."""
    human: frozenset[str]
    """Fields whose integers may be written as `8k`."""
    lowered: frozenset[str]
    """Fields that may be written in capitals."""
    used: list[str] = field(default_factory=list)
    """Config classes that are read as JSON."""


def read(folder: Path) -> Source:
    """Return the sources of one version. Raises SettingsError when the parser is not where it should be."""
    tree = Tree(folder).read(*FILES)
    for name in ("EngineArgs", "FrontendArgs"):
        if name not in tree.classes:
            raise SettingsError(f"{folder}: no class {name} in {', '.join(FILES)}: has vLLM moved it?")
    apart = Tree(folder).read(*values.FILES)
    tree.borrow(apart)
    return Source(tree, apart, frozenset(_human(tree)), values.lowered(tree))


def _human(tree: Tree) -> Iterator[str]:
    """Names that are compared, or listed, where `human_readable_int` is chosen as their type."""
    for node in (node for module in tree.modules.values() for node in ast.walk(module)):
        listed = isinstance(node, ast.Assign) and "human_readable_int" in ast.unparse(node.targets[0])
        chosen = isinstance(node, ast.If) and any("human_readable_int" in ast.unparse(one) for one in node.body)
        if listed or chosen:
            names = node.value if isinstance(node, ast.Assign) else getattr(node, "test", node)
            yield from (str(one.value) for one in ast.walk(names) if isinstance(one, ast.Constant))


def line_of(source: Source, version: str) -> Json:
    """Return the whole data of a version: the command line's options, and the JSON sections among them."""
    sections: Json = {ROOT: {**_frontend(source), **_added(source)}}
    while source.used:
        name = source.used.pop(0)
        if name not in sections:
            sections[name] = dict(_section(source, name))
    values.add_registered(source.apart, sections, source.lowered)
    values.add_parsers(source.apart, sections, _reads_none(source.tree))
    loader = ast.unparse(_loader(source.tree))
    return {
        "versions": [version],
        "mappings": "isinstance(value, dict)" in loader,
        "negates": "--no-" in loader,
        "lenient": [name for name in sections if name != ROOT and not _strict(source.tree, name)],
        "sections": sections,
    }


def _reads_none(tree: Tree) -> frozenset[str]:
    """Options with a reader of their own that takes `none` for nothing."""
    readers = [one.name for one in tree.modules["vllm/engine/arg_utils.py"].body if isinstance(one, ast.FunctionDef)]
    return frozenset(option for option in values.PARSERS if f"parse_{option.replace('-', '_')}" in readers)


def _loader(tree: Tree) -> ast.AST:
    found = [
        node
        for module in tree.modules.values()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef) and node.name in ("load_config_file", "_load_config_file")
    ]
    if not found:
        raise SettingsError(f"{tree.root}: no load_config_file: has vLLM moved it?")
    return found[0]


def _strict(tree: Tree, name: str) -> bool:
    """Whether a class refuses fields that it does not have."""
    maker = [one for module in tree.modules.values() for one in module.body if isinstance(one, ast.FunctionDef)]
    if any(one.name == "config" and "forbid" in ast.unparse(one) for one in maker):
        return True
    return any("forbid" in ast.unparse(one) for one in tree.classes[name][1].decorator_list)


def _frontend(source: Source) -> Json:
    """Each field of FrontendArgs and of its bases is an option."""
    return {
        _flag(name): {**entry, **_flagged(source, name), "in": file}
        for file, node in _bases(source.tree, "FrontendArgs")
        for name, (annotation, default) in fields(node)
        for entry in [_described(source, name, annotation, default)]
        if _flag(name) not in LEFT_OUT
    }


def _bases(tree: Tree, name: str) -> list[tuple[str, ast.ClassDef]]:
    if name not in tree.classes:
        return []
    file, node = tree.classes[name]
    return [*(one for base in node.bases for one in _bases(tree, type_name(base))), (file, node)]


def _flagged(source: Source, name: str) -> Json:
    """Return what FrontendArgs sets by hand for its options: JSON text, or types of their own."""
    for _, node in _bases(source.tree, "FrontendArgs"):
        for item in ast.walk(node):
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == f"frontend_kwargs['{name}']['type']":
                return {"type": "json" if "json.loads" in ast.unparse(item.value) else "any"}
    return {}


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _added(source: Source) -> Json:
    """Return what `add_argument` is called with, by the first long name."""
    found: Json = {}
    for file, scope in _parsers(source.tree):
        classes, renamed = dict(_kwargs_of(scope)), dict(_field_kwargs_of(scope))
        for call in calls(scope, "add_argument"):
            flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            long = [flag[2:] for flag in flags if flag.startswith("--")]
            if long and long[0] not in LEFT_OUT:
                others = [flag for flag in flags if flag != f"--{long[0]}"]
                entry = _argument(source, classes, _spelled_out(call, renamed), file, long[0])
                found[long[0]] = {**entry, **({"names": others} if others else {})}
    return found


def _parsers(tree: Tree) -> Iterator[tuple[str, ast.AST]]:
    wanted = ("add_cli_args", "make_arg_parser", "subparser_init")
    for file, module in tree.modules.items():
        for node in ast.walk(module):
            ours = isinstance(node, ast.FunctionDef) and node.name in wanted
            if ours and ("arg_utils" in file or "cli_args" in file or file.endswith("serve.py")):
                yield file, node


def _kwargs_of(scope: ast.AST) -> Iterator[tuple[str, str]]:
    """`cache_kwargs = get_kwargs(CacheConfig)`: the class by the variable."""
    for node in ast.walk(scope):
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(value, ast.Call) and type_name(value.func) == "get_kwargs":
            yield ast.unparse(node.targets[0]), type_name(value.args[0])


def _field_kwargs_of(scope: ast.AST) -> Iterator[tuple[str, ast.Subscript]]:
    """`moe_backend_kwargs = kernel_kwargs["moe_backend"]`: what a variable stands for."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            yield ast.unparse(node.targets[0]), node.value


def _spelled_out(call: ast.Call, renamed: dict[str, ast.Subscript]) -> ast.Call:
    """Return a call with `**moe_backend_kwargs` as `**kernel_kwargs["moe_backend"]`."""
    words = [
        ast.keyword(None, renamed[ast.unparse(argument.value)])
        if argument.arg is None and ast.unparse(argument.value) in renamed
        else argument
        for argument in call.keywords
    ]
    return ast.Call(call.func, call.args, words)


def _argument(source: Source, classes: dict[str, str], call: ast.Call, file: str, flag: str) -> Json:
    words = keywords(call)
    taken = next((one for one in ast.walk(call) if isinstance(one, ast.Subscript) and _class(one, classes)), None)
    if taken is not None:
        name = str(ast.literal_eval(taken.slice))
        return _field(source, classes[ast.unparse(taken.value)], name, flag) | _own_default(source, call)
    facts = {"type": _by_action(words), "in": file}
    choices = source.tree.literal(words.get("choices"))
    values = {"values": list(map(str, choices))} if isinstance(choices, list) else {}
    if facts["type"] == "str" and not values:
        values = _of_engine_args(source, flag)
    return facts | values | _default(source, words.get("default")) | _as_json(source, flag)


def _of_engine_args(source: Source, flag: str) -> Json:
    """Return the values that a config class lists of an option which the parser takes as any text."""
    _, default = dict(fields(source.tree.classes["EngineArgs"][1])).get(flag.replace("-", "_"), (None, None))
    if not isinstance(default, ast.Attribute) or ast.unparse(default.value) not in source.tree.classes:
        return {}
    meant = _field(source, ast.unparse(default.value), default.attr, flag)
    return {"values": meant["values"]} if "values" in meant and not meant.get("more") else {}


def _class(node: ast.Subscript, classes: dict[str, str]) -> bool:
    return ast.unparse(node.value) in classes and isinstance(node.slice, ast.Constant)


def _own_default(source: Source, call: ast.Call) -> Json:
    """Return the default next to `**kwargs["name"]`, where the parser has another one than the class."""
    for argument in call.keywords:
        if argument.arg is None and isinstance(argument.value, ast.Dict):
            pairs = zip(argument.value.keys, argument.value.values, strict=True)
            stated = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "default"]
            return _default(source, stated[0]) if stated else {}
    return {}


def _by_action(words: Any) -> str:
    action = ast.unparse(words["action"]) if "action" in words else ""
    if "Boolean" in action or "store_true" in action or "EnableDisable" in action:
        return "bool"
    kind = type_name(words["type"]) if "type" in words and "nargs" not in words else ""
    return "any" if action else SCALARS.get(kind, "any" if kind or "nargs" in words else "str")


def _field(source: Source, owner: str, name: str, flag: str) -> Json:
    """Return a field of a config class, or of one of its bases."""
    for file, node in reversed(_bases(source.tree, owner)):
        for found, (annotation, default) in fields(node):
            if found == name:
                facts = {**_snaked(node, name, _described(source, name, annotation, default)), "in": file}
                return facts | _as_json(source, flag)
    return {"type": "any", "in": "vllm/engine/arg_utils.py"} | _as_json(source, flag)


def _as_json(source: Source, flag: str) -> Json:
    name = JSON_CLASSES.get(flag)
    if name not in source.tree.classes:
        return {}
    source.used.append(str(name))
    return {"type": f"{name}?"}


def _section(source: Source, name: str) -> Iterator[tuple[str, Json]]:
    for file, node in _bases(source.tree, name):
        for found, (annotation, default) in fields(node):
            if not found.startswith("_") and found not in FILLED and "ClassVar" not in ast.unparse(annotation):
                entry = _snaked(node, found, _described(source, found, annotation, default, nested=True))
                yield found, {**entry, "in": file}


def _described(source: Source, name: str, annotation: ast.expr, default: ast.expr | None, nested: bool = False) -> Json:
    """Type, values, default and bounds of a field."""
    entry = _folded(source, name, _type(source, name, annotation, nested))
    if isinstance(default, ast.Call) and type_name(default.func) in ("Field", "field"):
        words = keywords(default)
        given = words.get("default", default.args[0] if default.args else None)
        limits = {bound: source.tree.literal(words[bound]) for bound in BOUNDS if bound in words}
        limits = {bound: value for bound, value in limits.items() if isinstance(value, int | float)}
        return (
            entry | _default(source, given) | (limits if entry["type"].rstrip("?") in ("int", "float", "size") else {})
        )
    return entry | _default(source, default)


def _folded(source: Source, name: str, facts: Json) -> Json:
    """Return the facts of a field, with `fold` where a validator lowers its values."""
    return {**facts, "fold": "lower"} if "values" in facts and name in source.lowered else facts


def _snaked(owner: ast.ClassDef, name: str, facts: Json) -> Json:
    """Return the facts of a field, with `fold` where its class reads any case, and dashes, of its values."""
    return {**facts, "fold": "snake"} if "values" in facts and name in values.snaked(owner) else facts


def _default(source: Source, node: ast.expr | None) -> Json:
    value = source.tree.literal(node)
    plain = isinstance(value, str | int | float | bool | None) or value in ([], {})
    return {"default": value} if plain and value is not UNKNOWN else {}


def _type(source: Source, name: str, annotation: ast.expr, nested: bool) -> Json:
    """As vLLM's own parser chooses: a class, then true or false, then listed values, lists, numbers, text."""
    every = [one for member in members(annotation) for one in _named(source.tree, member)]
    kinds = [type_name(one) for one in every if type_name(one) != "None"]
    optional = "?" if any(type_name(one) == "None" for one in every) else ""
    sections = [kind for kind in kinds if _is_section(source.tree, kind)]
    if sections:
        source.used.append(sections[0])
        return {"type": "any"} if len(kinds) > 1 and nested else {"type": f"{sections[0]}{optional}"}
    if "bool" in kinds:
        return {"type": ("bool" if len(kinds) == 1 else "any") + (optional if len(kinds) == 1 else "")}
    enums = [kind for kind in kinds if values.is_enum(source.tree, kind)]
    if enums:
        return values.of_enum(source.tree, enums[0], "str" in kinds)
    if "Literal" in kinds:
        return _listed(source, every, kinds, optional)
    if nested and len(set(kinds)) > 1:
        return {"type": "any"}
    return {"type": _whole(_plain(source, name, kinds, nested), optional)}


def _named(tree: Tree, member: ast.expr) -> list[ast.expr]:
    """Resolve a name that stands for a type; return anything else as is."""
    name = type_name(member) if isinstance(member, ast.Name | ast.Attribute) else ""
    if name in tree.names and name not in tree.classes:
        meant = tree.names[name]
        fits = isinstance(meant, ast.Subscript | ast.BinOp) or type_name(meant) in SCALARS
        return [one for inner in members(meant) for one in _named(tree, inner)] if fits else [member]
    return [member]


def _is_section(tree: Tree, kind: str) -> bool:
    if kind not in tree.classes:
        return False
    node = tree.classes[kind][1]
    return any("dataclass" in ast.unparse(one) or "config" in ast.unparse(one) for one in node.decorator_list)


def _listed(source: Source, every: list[ast.expr], kinds: list[str], optional: str) -> Json:
    """Values of a `Literal`; beside `str` the class takes any, and what reads it later may have been given more."""
    if not set(kinds) <= {"Literal", *values.OBJECTS, *values.FREE}:
        return {"type": "any"}
    found = [value for one in every if type_name(one) == "Literal" for value in _values(source.tree, one)]
    if UNKNOWN in found:
        return {"type": "str" + optional}
    kind = "int" if all(isinstance(value, int) for value in found) and "str" not in kinds else "str"
    more = {"more": True} if set(kinds) & values.FREE else {}
    return {"type": kind + optional, "values": list(dict.fromkeys(map(str, found))), **more}


def _values(tree: Tree, node: ast.expr) -> list[Any]:
    if not isinstance(node, ast.Subscript):
        return [UNKNOWN]
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    found: list[Any] = []
    for part in parts:
        inner = _named(tree, part)[0]
        if isinstance(inner, ast.Subscript) and type_name(inner) == "Literal":
            found += _values(tree, inner)
        else:
            found.append(tree.literal(part))
    return found


def _whole(kind: str, optional: str) -> str:
    return kind if kind == "any" else kind + optional


def _plain(source: Source, name: str, kinds: list[str], nested: bool) -> str:
    if set(kinds) & {"tuple", "list", "set", "Sequence", "List"}:
        return "any"
    if "int" in kinds:
        return "any" if "dict" in kinds else "size" if name in source.human and not nested else "int"
    if "float" in kinds:
        return "float"
    if "dict" in kinds:
        return "any" if "str" in kinds or len(set(kinds)) > 1 else "mapping" if nested else "json"
    return "str" if set(kinds) == {"str"} else "any"
