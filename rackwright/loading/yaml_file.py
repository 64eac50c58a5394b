"""Reads one YAML file: plain values, the line of every key, vault values kept encrypted, duplicates refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rackwright.settings.origin import Origin, Origins
from rackwright.settings.problems import Problem
from rackwright_engines.key_path import KeyPath

VAULT_HEADER = "$ANSIBLE_VAULT;"
VAULT_TAGS = ("!vault", "!vault-encrypted")
DIGITS = 300
"""Of a number at most: Python refuses to read some thousands."""
DEPTH = 100
"""Of mappings and lists within each other at most: nothing that is meant goes as deep, and Python's stack ends."""
NODES = 20_000
"""Values of a file at most, each counted as often as an alias names it: ten lines of aliases make a billion."""
TOO_MANY = "more than {} values, each counted as often as an alias names it"
TEXT = 64
"""Characters that count as a value: an alias may stand for a long text, too."""
TEXTS = ("tag:yaml.org,2002:str", "!unsafe")
"""Tags of what is text."""
KINDS = {
    "tag:yaml.org,2002:bool": "switch (true or false)",
    "tag:yaml.org,2002:int": "number",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:timestamp": "date",
}
"""The meaning of a tag."""
NO_KEY = "a mapping or a list as a key; if its braces are Jinja, write the value itself: nothing here evaluates it"
HINTS = {
    r"found character '\t' that cannot start any token": ": put blanks in the place of the tab",
    "mapping values are not allowed here": ": put text that ends in a colon, or has a colon and a blank, in quotes",
    "but found another document": ": a line of --- begins it, and one document is read",
}
"""The text to write instead, by PyYAML's words."""
PLAIN = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
"""A number as people write it."""


@dataclass(frozen=True)
class Ciphertext:
    """A value, or a whole file, that ansible-vault encrypted."""

    text: str
    where: Origin


@dataclass(frozen=True)
class Document:
    """The content of a file. `problems` is not empty when it could not be understood; values are then partial."""

    values: dict[str, Any]
    origins: Origins
    problems: tuple[Problem, ...] = ()


class OddNumber(int):
    """A number that YAML reads as another one than people do: octal, sexagesimal, hexadecimal, binary."""

    written: str

    @classmethod
    def of(cls, value: int, written: str) -> OddNumber:
        """Return the number, with its text in the file."""
        number = cls(value)
        number.written = written
        return number


class _WrongValueError(yaml.MarkedYAMLError):
    """A value of the wrong kind, with its node, which has its line and its key."""

    def __init__(self, problem: str, node: yaml.Node) -> None:
        super().__init__(problem=problem, problem_mark=node.start_mark)
        self.node = node


class _Loader(yaml.SafeLoader):
    """YAML as Ansible reads it: `!vault` stays encrypted, `!unsafe` is plain text."""

    file = ""
    most = NODES
    depth = composed = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a value and what is in it, down to a depth at which Python's stack is far from its end."""
        self.depth += 1
        self.composed += 1
        if self.composed > self.most:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=TOO_MANY.format(self.most), problem_mark=mark)
        if self.depth > DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"more than {DEPTH} values in each other", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node. PyYAML's own errors of a date, a number or a switch say neither line nor key."""
        try:
            return super().construct_object(node, deep)
        except yaml.MarkedYAMLError as error:
            raise _WrongValueError(str(error.problem), getattr(error, "node", node)) from None
        except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError):
            kind = KINDS.get(node.tag, "value of its kind")
            raise _WrongValueError(f"is written as a {kind}, which it is not; put text in quotes", node) from None

    def number(self, node: yaml.ScalarNode) -> int:
        text = str(self.construct_scalar(node))
        if len(text) > DIGITS:
            raise yaml.constructor.ConstructorError(None, None, f"a number of {len(text)} digits", node.start_mark)
        value = int(self.construct_yaml_int(node))
        return value if PLAIN.fullmatch(text) else OddNumber.of(value, text)

    def vault(self, node: yaml.ScalarNode) -> Ciphertext:
        return Ciphertext(str(self.construct_scalar(node)).strip(), _origin(self.file, node))

    def unsafe(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.number)
for _tag in VAULT_TAGS:
    _Loader.add_constructor(_tag, _Loader.vault)
_Loader.add_constructor("!unsafe", _Loader.unsafe)


def parse(text: str, file: str, most: int = NODES) -> Document:
    """Parse the text of `file` (the name for messages). Never raises for what the text says.

    most: values that the file may have.
    """
    node = None
    try:
        loader = _Loader(text)
        loader.file, loader.most = file, most
        node = loader.get_single_node()
        _weigh(node, most)
        origins, problems = _survey(node, file)
        values = loader.construct_document(node) if node is not None else {}
    except (yaml.YAMLError, ValueError, TypeError) as error:
        return Document({}, {}, (_unreadable(error, text, node, file),))
    return _checked(values or {}, origins, [*problems, *_odd_keys(node, file)], file)


def _weigh(root: yaml.Node | None, most: int) -> None:
    """Raise YAMLError for a value within itself, and for more values than the file may have."""
    if root is not None and _weight(root, {}, set()) > most:
        raise yaml.MarkedYAMLError(problem=TOO_MANY.format(most), problem_mark=root.start_mark)


def _weight(node: yaml.Node, weights: dict[int, int], above: set[int]) -> int:
    """Return the number of values below a node and itself, each counted as often as an alias names it."""
    if id(node) in above:
        raise yaml.MarkedYAMLError(problem="an alias of a value within itself", problem_mark=node.start_mark)
    if id(node) not in weights:
        pairs = node.value if isinstance(node, yaml.CollectionNode) else ()
        below = [child for pair in pairs for child in (pair if isinstance(pair, tuple) else (pair,))]
        text = len(node.value) // TEXT if isinstance(node, yaml.ScalarNode) else 0
        weights[id(node)] = 1 + text + sum(_weight(child, weights, above | {id(node)}) for child in below)
    return weights[id(node)]


def _checked(values: Any, origins: Origins, problems: list[Problem], file: str) -> Document:
    if not isinstance(values, dict):
        return Document(
            {}, {}, (Problem(Origin(file, 1), (), "must be a mapping of `key: value` lines", code="RW0217"),)
        )
    return Document({key: value for key, value in values.items() if isinstance(key, str)}, origins, tuple(problems))


def _odd_keys(root: yaml.Node | None, file: str) -> Iterator[Problem]:
    """Yield the keys at the top that are not text; by now they include those of merged mappings."""
    for key, _ in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.tag not in TEXTS:
            yield Problem(_origin(file, key), (str(key.value),), "a key must be text: put it in quotes", code="RW0217")


def _unreadable(error: Exception, text: str, root: yaml.Node | None, file: str) -> Problem:
    what = getattr(error, "problem", None) or "unreadable"
    if what == "second occurrence":
        what = str(getattr(error, "context", what)).split(";")[0]
    what += HINTS.get(what, "")
    what = NO_KEY if what == "found unhashable key" else what
    if isinstance(error, yaml.reader.ReaderError):
        what = f"the character U+{ord(text[error.position]):04X} is not allowed"
    path = _path_of(getattr(error, "node", None), root)
    return Problem(Origin(file, _line_number(error, text)), path, f"not valid YAML: {what}", code="RW0217")


def _line_number(error: Exception, text: str) -> int:
    """Return where an error stands; a character that YAML does not take is met before there are lines. 0: unknown."""
    if isinstance(error, yaml.reader.ReaderError):
        return text[: error.position].count("\n") + 1
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else 0


def _path_of(wrong: yaml.Node | None, root: yaml.Node | None) -> KeyPath:
    """Return the keys down to a value or a key; empty without such a node."""
    if wrong is None:  # what was refused before it was weighed may be a bomb: it is not walked through
        return ()
    return next((path for path, *nodes in _walk(root, (), ()) if any(wrong is node for node in nodes)), ())


def _origin(file: str, node: yaml.Node) -> Origin:
    return Origin(file, node.start_mark.line + 1)


def _survey(root: yaml.Node | None, file: str) -> tuple[Origins, list[Problem]]:
    """Return the lines of all keys, and the keys that come twice, before YAML merge keys are expanded."""
    origins: Origins = {}
    problems: list[Problem] = []
    for path, node, _ in _walk(root, (), ()):
        if path in origins:
            text = f"comes twice; the first is on line {origins[path].line_number}"
            problems.append(Problem(_origin(file, node), path, text, code="RW0218"))
        origins.setdefault(path, _origin(file, node))
    return origins, problems


def _walk(
    node: yaml.Node | None, path: KeyPath, above: tuple[yaml.Node, ...]
) -> Iterator[tuple[KeyPath, yaml.Node, yaml.Node]]:
    """Yield each key and each item of a list: its path, the node that marks its line, and its value."""
    if node is None or any(node is ancestor for ancestor in above):
        return
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name != "<<":
                yield (*path, name), key, value
                yield from _walk(value, (*path, name), (*above, node))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value, value
            yield from _walk(value, (*path, index), (*above, node))
