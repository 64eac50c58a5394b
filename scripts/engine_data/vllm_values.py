"""Values of vLLM's options that lie apart from the config classes: enums, and names that parsers are registered by."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rackwright_engines.options.schema import Json
from scripts.engine_data.tree import UNKNOWN, Tree, assigned, calls, keywords, type_name

FILES = (
    "vllm/attention/backends/registry.py",
    "vllm/v1/attention/backends/**/registry.py",
    "vllm/model_executor/layers/quantization/__init__.py",
    "vllm/model_executor/model_loader/__init__.py",
    "vllm/transformers_utils/config.py",
    "vllm/entrypoints/openai/tool_parsers/*.py",
    "vllm/tool_parsers/*.py",
    "vllm/reasoning/*.py",
    "vllm/distributed/weight_transfer/factory.py",
)
OBJECTS = frozenset({"dtype", "type"})
"""Types whose values no file can hold."""
FREE = frozenset({"str", "type"})
"""Types beside a `Literal` that let other values through."""
LOWERS = "_lowercase_"
NORMALIZES = "_normalize_"
"""Begin the names of validators."""
SNAKE = ".lower().replace('-', '_')"
PARSERS = {"tool-call-parser": ("tool", "Tool"), "reasoning-parser": ("reasoning", "Reasoning")}
NESTED = {"reasoning-parser": ("reasoning_parser", "reasoning_backend")}
"""The same in the sections of JSON."""


def lowered(tree: Tree) -> frozenset[str]:
    """Return the fields that a validator puts into small letters."""
    methods = (one for module in tree.modules.values() for one in _methods(module))
    return frozenset(one.name.removeprefix(LOWERS) for one in methods if one.name.startswith(LOWERS))


def snaked(node: ast.ClassDef) -> frozenset[str]:
    """Return the fields of a class that a validator puts into small letters, with underscores for dashes."""
    methods = (one for one in node.body if isinstance(one, ast.FunctionDef) and SNAKE in ast.unparse(one))
    return frozenset(one.name.removeprefix(NORMALIZES) for one in methods if one.name.startswith(NORMALIZES))


def is_enum(tree: Tree, kind: str) -> bool:
    """Return True for a class of constants."""
    return kind in tree.classes and any("Enum" in type_name(base) for base in tree.classes[kind][1].bases)


def of_enum(tree: Tree, kind: str, free: bool) -> Json:
    """Return the constants by their names where the engine looks them up so, in any case; else by what they hold.

    free: True where the class takes any text beside them.
    """
    constants = {name: tree.literal(value) for name, value in assigned(tree.classes[kind][1].body) if name[0] != "_"}
    if lookups := list(_lookups(tree, kind)):
        numbers = [str(value) for value in constants.values() if isinstance(value, int)]
        more = [text.upper() for lookup in lookups for text in _compared(lookup)]
        return {"type": "str?", "values": list(dict.fromkeys([*constants, *numbers, *more])), "fold": "upper"}
    if _counts(tree, kind) and constants:
        return {"type": "int?", "values": list(map(str, constants.values()))}
    if not constants or not all(isinstance(value, str) for value in constants.values()):
        return {"type": "any"}
    return {"type": "str?", "values": list(constants.values()), **({"more": True} if free else {})}


def _lookups(tree: Tree, kind: str) -> Iterator[ast.FunctionDef]:
    """Yield methods of the config classes that have `Kind[value.upper()]`, or a name for that."""
    modules = (module for file, module in tree.modules.items() if file.startswith("vllm/config"))
    for function in (one for module in modules for one in _methods(module)):
        subscripts = (one for one in ast.walk(function) if isinstance(one, ast.Subscript))
        raised = {"value.upper()", *_raised(function)}
        if any(type_name(one) == kind and ast.unparse(one.slice) in raised for one in subscripts):
            yield function


def _raised(function: ast.FunctionDef) -> Iterator[str]:
    """Yield names that are given `value.upper()`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == "value.upper()":
            yield ast.unparse(node.targets[0])


def _counts(tree: Tree, kind: str) -> bool:
    """Return True for an enum of whole numbers that no config class looks up by name."""
    modules = (module for file, module in tree.modules.items() if file.startswith("vllm/config"))
    every = (node for module in modules for node in ast.walk(module))
    names = any(isinstance(node, ast.Subscript) and type_name(node) == kind for node in every)
    return not names and any(type_name(base) == "IntEnum" for base in tree.classes[kind][1].bases)


def _methods(module: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in module.body:
        methods = node.body if isinstance(node, ast.ClassDef) else ()
        yield from (one for one in methods if isinstance(one, ast.FunctionDef))


def _compared(function: ast.FunctionDef) -> Iterator[str]:
    """Yield words that the value is compared with, as `auto`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and "value" in ast.unparse(node.left):
            words = [one.value for one in node.comparators if isinstance(one, ast.Constant)]
            yield from (text for text in words if isinstance(text, str))


def add_parsers(apart: Tree, sections: Json, unset: frozenset[str]) -> None:
    """Give the options that name a parser their values; a plugin may register more where an option names one.

    unset: options that read `none` as no parser at all.
    """
    root = next(iter(sections.values()))
    for option, (folder, prefix) in PARSERS.items():
        names = sorted(set(_registered(apart, folder, prefix)))
        more = {"more": True} if f"{folder}-parser-plugin" in root else {}
        extra = {"values": [*names, *({"none"} if option in unset else ())], **more}
        for keys, name in _naming(sections, option) if names else ():
            keys[name] = {**keys[name], **extra}


def add_registered(apart: Tree, sections: Json, small: frozenset[str]) -> None:
    """Give options of plain text the names of the table that they are looked up in, to which a plugin may add.

    small: fields that are put into small letters before.
    """
    formats = _of_literal(apart, "LoadFormats")
    transfer = [name for module in apart.modules.values() for name in _first_words(module, "register_engine")]
    for section, keys in sections.items():
        backends = {"backend": transfer} if section == "WeightTransferConfig" else {}
        for name, found in {"load-format": formats, "load_format": formats, **backends}.items():
            if found and name in keys and keys[name]["type"] == "str" and "values" not in keys[name]:
                fold = {"fold": "lower"} if name.replace("-", "_") in small else {}
                keys[name] = {**keys[name], "values": found, "more": True, **fold}


def _of_literal(tree: Tree, name: str) -> list[str]:
    node = tree.names.get(name)
    found = tree.literal(node.slice) if isinstance(node, ast.Subscript) else []
    return list(found) if isinstance(found, list) else []


def _first_words(module: ast.Module, method: str) -> list[str]:
    first = [call.args[0] for call in calls(module, method) if call.args]
    return [one.value for one in first if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _naming(sections: Json, option: str) -> Iterator[tuple[Json, str]]:
    """Yield where a parser is set: the option, and what the config class of structured output calls it."""
    for keys in sections.values():
        yield from ((keys, name) for name in (option, *NESTED.get(option, ())) if name in keys)


def _registered(tree: Tree, folder: str, prefix: str) -> Iterator[str]:
    table = tree.names.get(f"_{prefix.upper()}_PARSERS_TO_REGISTER")
    keys = table.keys if isinstance(table, ast.Dict) else []
    yield from (str(key.value) for key in keys if isinstance(key, ast.Constant))
    for file, module in tree.modules.items():
        if f"/{folder}" in file:
            for call in calls(module, "register_module"):
                yield from _names(tree, call, f"{prefix}ParserManager")


def _names(tree: Tree, call: ast.Call, manager: str) -> Iterator[str]:
    given = tree.literal(keywords(call).get("name", call.args[0] if call.args else None))
    if ast.unparse(call.func) == f"{manager}.register_module" and given is not UNKNOWN:
        yield from [given] if isinstance(given, str) else given
