"""Makes a version line's data from TensorRT-LLM's source tree, by reading its pydantic classes and running nothing."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

from rackwright.messages import SettingsError
from rackwright_engines.options.json_schema import data_of, version_of
from rackwright_engines.options.schema import EXTENDS, Json, merged_file

SOURCE = Path("tensorrt_llm/llmapi/llm_args.py")
ROOT = "TorchLlmArgs"
SHARED_BASE = "DecodingBaseConfig"
DECODING_TAG = "decoding_type"
STRICT = "StrictBaseModel"
SCALARS = {
    "bool": "bool",
    "int": "int",
    "StrictInt": "int",
    "float": "float",
    "str": "str",
    "Path": "str",
    "PositiveInt": "int",
    "NonNegativeInt": "int",
    "NonNegativeFloat": "float",
}
BOUNDS: dict[str, Json] = {"PositiveInt": {"gt": 0}, "NonNegativeInt": {"ge": 0}, "NonNegativeFloat": {"ge": 0}}
BOUND_NAMES = ("gt", "ge", "lt", "le")
CONTAINERS = {"List": "list", "list": "list", "Set": "set", "set": "set"}
KEPT_CONTAINERS = frozenset({"list[int]", "list[float]", "set[int]"})
KEPT_MAPPINGS = frozenset({"dict[str,str]", "dict[int,int]"})


@dataclass(frozen=True)
class Classes:
    """What a source file defines: classes, the values of its enumerations, and names that stand for types."""

    classes: Mapping[str, ast.ClassDef]
    enums: Mapping[str, dict[str, object]]
    """Values by member, by enumeration."""
    aliases: Mapping[str, ast.expr]
    used: list[str] = field(default_factory=list)
    """Sections and unions that some key needs, as they were met."""


class _Page(HTMLParser):
    """The source that a page of the documentation shows, without its links back."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self._shown = False
        self._link = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._shown = self._shown or tag == "pre"
        self._link = self._link or (tag == "a" and ("class", "viewcode-back") in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._shown = self._shown and tag != "pre"
        self._link = self._link and tag != "a"

    def handle_data(self, data: str) -> None:
        if self._shown and not self._link:
            self.text.append(data)


def source_of_page(page: str) -> str:
    """Return the Python that a page `_modules/.../llm_args.html` of the documentation shows."""
    reader = _Page()
    reader.feed(page)
    return "".join(reader.text)


def read_source(tree: Path) -> Classes:
    """Return the classes of a source tree, or of a saved page of the documentation that shows the file.

    Raises SettingsError when the file or class is missing, or there is no Python in it.
    """
    path = tree if tree.suffix == ".html" else tree / SOURCE
    if not path.is_file():
        raise SettingsError(f"{path}: no such file; next: give the root of a TensorRT-LLM source tree")
    text = path.read_text(encoding="utf-8")
    try:
        body = ast.parse(source_of_page(text) if path == tree else text).body
    except SyntaxError as error:
        raise SettingsError(f"{path} cannot be parsed: {error}") from error
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    if ROOT not in classes:
        raise SettingsError(f"{path} has no class {ROOT}: is this a version with the PyTorch backend?")
    enums = {name: _enum(node) for name, node in classes.items() if _is_enum(node)}
    return Classes({name: node for name, node in classes.items() if name not in enums}, enums, dict(_aliases(body)))


def _is_enum(node: ast.ClassDef) -> bool:
    return any(_name(base).endswith("Enum") for base in node.bases)


def _enum(node: ast.ClassDef) -> dict[str, object]:
    items = [(item.targets[0], item.value) for item in node.body if isinstance(item, ast.Assign)]
    return {_name(target): value.value for target, value in items if isinstance(value, ast.Constant)}


def _aliases(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def line_of(source: Classes, version: str) -> Json:
    """Return the whole data of a version: sections that the root needs, and the unions among them."""
    sections: Json = {ROOT: _section(source, ROOT)}
    unions: Json = {}
    while source.used:
        name = source.used.pop(0)
        if name in sections or name in unions:
            continue
        if name in source.aliases:
            unions[name] = _union(source, source.aliases[name])
            source.used.extend(unions[name]["kinds"].values())
        else:
            sections[name] = _section(source, name)
            source.used.extend([SHARED_BASE] if EXTENDS in sections[name] else [])
    return {"versions": [version], "decoding": _decoding(source), "sections": sections, "unions": unions}


def line_of_schema(path: Path, version: str) -> Json:
    """Return the whole data of a version from the schema that it ships of itself.

    Raises SettingsError for a file that is not a schema, and for the schema of another version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    if version_of(text) != version:
        named = version_of(text) or "no version"
        raise SettingsError(f"{path} is of {named}, not of {version}; next: take the file from the version's own tag")
    return {"versions": [version], **data_of(text)}


def _decoding(source: Classes) -> str:
    """How a wrong speculative_config is refused: by pydantic's tagged union, or by the classes' own dispatch."""
    if any("discriminator" in ast.unparse(node) for node in source.aliases.values()):
        return "discriminated"
    eagle = source.classes.get("EagleDecodingConfig")
    methods = [item for item in eagle.body if isinstance(item, ast.FunctionDef)] if eagle else []
    sets_attributes = any(item.name == "__init__" and "setattr(" in ast.unparse(item) for item in methods)
    return "attributes" if sets_attributes else "typed"


def _section(source: Classes, name: str) -> Json:
    """Keys of a class, its bases' first; the base of all decoding kinds stays a section of its own."""
    node = source.classes[name]
    keys: Json = {}
    for base in map(_name, node.bases):
        if base == SHARED_BASE:
            keys[EXTENDS] = base
        elif base in source.classes and base != STRICT:
            keys |= _section(source, base)
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            keys |= _keys(source, item.target.id, item)
    return keys


def _keys(source: Classes, name: str, item: ast.AnnAssign) -> Json:
    """Return the key of one field, under each of its names."""
    skipped = (
        name.startswith("_") or name in ("model_config", DECODING_TAG) or "ClassVar" in ast.unparse(item.annotation)
    )
    if skipped:
        return {}
    entry = _type(source, item.annotation)
    names, details = [name], item.value
    if isinstance(details, ast.Call):
        entry |= _details(source, details)
        names = _names(name, details)
    elif details is not None:
        entry |= _default(source, details)
    return dict.fromkeys(names, entry)


def _details(source: Classes, call: ast.Call) -> Json:
    """Default and bounds of a `Field(...)`."""
    words = {argument.arg: argument.value for argument in call.keywords if argument.arg}
    default = words.get("default", call.args[0] if call.args else None)
    found = _default(source, default) if default is not None else {}
    bounds = {bound: words[bound] for bound in BOUND_NAMES if bound in words}
    return found | {bound: value.value for bound, value in bounds.items() if isinstance(value, ast.Constant)}


def _default(source: Classes, node: ast.expr) -> Json:
    if isinstance(node, ast.Attribute) and _name(node.value) in source.enums:
        member = source.enums[_name(node.value)].get(node.attr)
        return {"default": member} if isinstance(member, str) else {}
    try:
        value = _number(node) if isinstance(node, ast.BinOp) else ast.literal_eval(node)
    except ValueError:
        return {}
    return {} if value is Ellipsis else {"default": value}


ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}


def _number(node: ast.expr) -> Any:
    """Return the value of a sum such as `1024**3`. Raises ValueError for anything else."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return ARITHMETIC[type(node.op)](_number(node.left), _number(node.right))
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    raise ValueError(ast.unparse(node))


def _names(name: str, call: ast.Call) -> list[str]:
    """All names under which a field is read: its own, its alias, or those of `AliasChoices`; none that is private."""
    return [found for found in _said_names(name, call) if not found.startswith("_")]


def _said_names(name: str, call: ast.Call) -> list[str]:
    for argument in call.keywords:
        if argument.arg in ("alias", "validation_alias") and isinstance(argument.value, ast.Constant):
            return [str(argument.value.value)]
        if argument.arg == "validation_alias" and isinstance(argument.value, ast.Call):
            return [str(arg.value) for arg in argument.value.args if isinstance(arg, ast.Constant)]
    return [name]


def _type(source: Classes, node: ast.expr) -> Json:
    """Type, allowed values and bounds of an annotation."""
    members = [member for member in _members(node) if not _is_none(member)]
    entry = _plain_type(source, members[0]) if len(members) == 1 else _several(source, members)
    optional = len(members) < len(_members(node)) and entry["type"] != "any"
    return {**entry, "type": f"{entry['type']}?"} if optional else entry


def _members(node: ast.expr) -> list[ast.expr]:
    """Return the types of `Optional`, `Union` and `|`; a type alone is one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    if isinstance(node, ast.Subscript) and _name(node.value) == "Optional":
        return [*_members(node.slice), ast.Constant(None)]
    if isinstance(node, ast.Subscript) and _name(node.value) == "Union":
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [member for part in parts for member in _members(part)]
    return [node]


def _is_none(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or _name(node) == "NoneType"


def _several(source: Classes, members: list[ast.expr]) -> Json:
    types = {_plain_type(source, member)["type"] for member in members}
    return {"type": types.pop()} if len(types) == 1 else {"type": "any"}


def _plain_type(source: Classes, node: ast.expr) -> Json:
    name = _name(node)
    if name in SCALARS:
        return {"type": SCALARS[name], **BOUNDS.get(name, {})}
    if name in source.enums:
        values = list(source.enums[name].values())
        return {"type": "str", "values": values} if all(isinstance(one, str) for one in values) else {"type": "any"}
    if name in source.aliases:
        return _alias(source, name)
    if name in source.classes:
        source.used.append(name)
        return {"type": name}
    if isinstance(node, ast.Subscript):
        return _subscript(source, node)
    return {"type": "mapping" if name in ("dict", "Dict") else "any"}


def _alias(source: Classes, name: str) -> Json:
    node = source.aliases[name]
    if "discriminator" in ast.unparse(node):
        source.used.append(name)
        return {"type": name}
    members = _members(node)
    if any(_name(member) in _dispatched(source) for member in members):
        source.used.append(name)
        return {"type": f"{name}?" if any(map(_is_none, members)) else name}
    return _type(source, node)


def _dispatched(source: Classes) -> dict[str, str]:
    """Tag by class, as the base of all decoding kinds looks them up where pydantic does not."""
    base = source.classes.get(SHARED_BASE)
    tables = [node for node in ast.walk(base) if isinstance(node, ast.Dict)] if base else []
    pairs = [(key, value) for table in tables for key, value in zip(table.keys, table.values, strict=True)]
    return {
        _name(value): str(key.value)
        for key, value in pairs
        if isinstance(key, ast.Constant) and _name(value) in source.classes
    }


def _subscript(source: Classes, node: ast.Subscript) -> Json:
    name, inside = _name(node.value), node.slice
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Literal":
        values = [part.value for part in parts if isinstance(part, ast.Constant)]
        return {"type": "str", "values": values} if all(isinstance(value, str) for value in values) else {"type": "any"}
    if name == "Annotated":
        return _type(source, parts[0])
    if name in CONTAINERS:
        kind = f"{CONTAINERS[name]}[{_type(source, parts[0])['type']}]"
        return {"type": kind if kind in KEPT_CONTAINERS else "any"}
    if name in ("Dict", "dict"):
        kind = f"dict[{','.join(str(_type(source, part)['type']) for part in parts)}]"
        return {"type": kind if kind in KEPT_MAPPINGS else "mapping"}
    return {"type": "any"}


def _union(source: Classes, node: ast.expr) -> Json:
    """Return the sections of a union by their tags."""
    if "discriminator" not in ast.unparse(node):
        kinds = _dispatched(source)
        names = [name for name in map(_name, _members(node)) if name in kinds]
        return {"tag": DECODING_TAG, "kinds": {kinds[name]: name for name in names}}
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.slice, ast.Tuple)
    tag = next(
        str(argument.value.value)
        for call in node.slice.elts[1:]
        if isinstance(call, ast.Call)
        for argument in call.keywords
        if argument.arg == "discriminator" and isinstance(argument.value, ast.Constant)
    )
    names = [_name(member) for member in _members(node.slice.elts[0])]
    return {"tag": tag, "kinds": {_tag(source, name, tag): name for name in names}}


def _tag(source: Classes, name: str, tag: str) -> str:
    for item in source.classes[name].body:
        if isinstance(item, ast.AnnAssign) and _name(item.target) == tag:
            return str(_plain_type(source, item.annotation)["values"][0])
    raise SettingsError(f"class {name} has no {tag} of its own, so its kind is not known")


def difference(release_line: Json, base: str) -> Json:
    """Return a line as it differs from another line of the data: what it adds or changes, and what is gone.

    What validators bound, and what the command line gives, is not seen in the fields: the other line's word counts.
    """
    old: Json = merged_file("tensorrt-llm", base)["sections"]
    new: Json = {
        name: {key: _as_before(old.get(name, {}).get(key), entry) for key, entry in keys.items()}
        for name, keys in release_line["sections"].items()
    }
    added = {
        name: {key: entry for key, entry in keys.items() if old.get(name, {}).get(key) != entry}
        for name, keys in new.items()
    }
    gone = {name: [key for key in keys if key not in new[name]] for name, keys in old.items() if name in new}
    return {
        "base": base,
        **{key: value for key, value in release_line.items() if key != "sections"},
        "add": {name: keys for name, keys in added.items() if keys},
        "remove": {name: keys for name, keys in gone.items() if keys},
    }


def _as_before(old: object, entry: Any) -> Any:
    """Return a key with the bounds that it had, where its fields show none."""
    if not isinstance(old, dict) or not isinstance(entry, dict) or old.get("type") != entry.get("type"):
        return entry
    bounds = {name: old[name] for name in (*BOUND_NAMES, "given") if name in old and not set(BOUND_NAMES) & set(entry)}
    return {**entry, **bounds}


def as_file(release_line: Json) -> str:
    """Return a line's data as the text of its file, one key a line."""
    parts: list[str] = []
    for name, value in release_line.items():
        if name in ("sections", "add"):
            parts.append(f"{name}:\n" + "".join(_section_text(section, keys) for section, keys in value.items()))
        elif value != {}:
            parts.append(_entry_text(name, value))
    return "".join(parts)


def _section_text(name: str, keys: Json) -> str:
    lines = [f"    {_entry_text(key, entry, flow=True)}" for key, entry in keys.items()]
    return f"  {name}:{'' if lines else ' {}'}\n" + "".join(lines)


def _entry_text(key: str, value: object, flow: bool = False) -> str:
    """Return one key as text.

    With `flow` its value is on the same line, else only its innermost lists and mappings are in one line.
    """
    if not isinstance(value, dict | list):
        return f"{key}: {value}\n"
    if flow:
        return f"{key}: {yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=1000)}"
    return yaml.safe_dump({key: value}, sort_keys=False, default_flow_style=None, width=1000)
