"""Reads one YAML file: plain values, the line of every key, vault values kept encrypted, duplicates refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rackwright.settings.origin import KeyPath, Origin, Origins
from rackwright.settings.problems import Problem

VAULT_HEADER = "$ANSIBLE_VAULT;"
VAULT_TAGS = ("!vault", "!vault-encrypted")


@dataclass(frozen=True)
class Ciphertext:
    """A value, or a whole file, that ansible-vault encrypted."""

    text: str
    where: Origin


@dataclass(frozen=True)
class Document:
    """What a file says. `problems` is not empty when it could not be understood; values are then partial."""

    values: dict[str, Any]
    origins: Origins
    problems: tuple[Problem, ...] = ()


class _Loader(yaml.SafeLoader):
    """YAML as Ansible reads it: `!vault` stays encrypted, `!unsafe` is plain text."""

    file = ""

    def vault(self, node: yaml.ScalarNode) -> Ciphertext:
        return Ciphertext(str(self.construct_scalar(node)).strip(), _origin(self.file, node))

    def unsafe(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))


for _tag in VAULT_TAGS:
    _Loader.add_constructor(_tag, _Loader.vault)
_Loader.add_constructor("!unsafe", _Loader.unsafe)


def parse(text: str, file: str) -> Document:
    """Parse the text of `file` (the name for messages). Never raises for what the text says."""
    loader = _Loader(text)
    loader.file = file
    try:
        node = loader.get_single_node()
        origins, problems = _survey(node, file)
        values = loader.construct_document(node) if node is not None else {}
    except yaml.YAMLError as error:
        return Document({}, {}, (_unreadable(error, file),))
    finally:
        loader.dispose()
    return _checked(values or {}, origins, problems, file)


def _checked(values: Any, origins: Origins, problems: list[Problem], file: str) -> Document:
    if not isinstance(values, dict):
        return Document(
            {}, {}, (Problem(Origin(file, 1), (), "must be a mapping of `key: value` lines", code="RW0217"),)
        )
    for key in [key for key in values if not isinstance(key, str)]:
        problems.append(
            Problem(origins.get((key,)), (str(key),), "a key must be text: put it in quotes", code="RW0217")
        )
        del values[key]
    return Document(values, origins, tuple(problems))


def _unreadable(error: yaml.YAMLError, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "unreadable"
    return Problem(Origin(file, mark.line + 1 if mark else 0), (), f"not valid YAML: {what}", code="RW0217")


def _origin(file: str, node: yaml.Node) -> Origin:
    return Origin(file, node.start_mark.line + 1)


def _survey(root: yaml.Node | None, file: str) -> tuple[Origins, list[Problem]]:
    """Lines of all keys, and the keys that come twice, before YAML merge keys are expanded."""
    origins: Origins = {}
    problems: list[Problem] = []
    for path, node in _walk(root, (), ()):
        if path in origins:
            text = f"comes twice; the first is on line {origins[path].line}"
            problems.append(Problem(_origin(file, node), path, text, code="RW0218"))
        origins.setdefault(path, _origin(file, node))
    return origins, problems


def _walk(node: yaml.Node | None, path: KeyPath, above: tuple[yaml.Node, ...]) -> Iterator[tuple[KeyPath, yaml.Node]]:
    if node is None or any(node is ancestor for ancestor in above):
        return
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name != "<<":
                yield (*path, name), key
                yield from _walk(value, (*path, name), (*above, node))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value
            yield from _walk(value, (*path, index), (*above, node))
