"""Sources of the settings' secrets: text, ansible-vault, or a command that prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rackwright.loading.ansible.jinja import holds_jinja
from rackwright.loading.merge import Layer
from rackwright.loading.secret_commands import Answer, SecretCommand, answers_of
from rackwright.loading.wording import SECRET_PATHS
from rackwright.settings.origin import origin_of
from rackwright.settings.problems import Problem
from rackwright.settings.secret import Secret, looks_secret
from rackwright_engines.key_path import KeyPath

COMMAND = "command"
IN_PEM = "certificate_key"
"""The only secret of several lines."""
FORM = "as `{command: [pass, show, NAME]}`"


class CommandFault(NamedTuple):
    """A problem of a secret's command: below which key, and the code of its kind."""

    below: KeyPath
    text: str
    code: str = "RW0285"


def with_printed(hosts: Mapping[str, Layer], root: Path) -> dict[str, tuple[Layer, list[Problem]]]:
    """Return the values of each host with what its secrets' commands print, and what is wrong with them.

    root: the site's folder, in which they run. A secret that cannot be had is missing in the values.
    """
    commands = {name: dict(_commands(layer.values)) for name, layer in hosts.items()}
    wanted = {
        SecretCommand(tuple(value[COMMAND]), root)
        for found in commands.values()
        for value in found.values()
        if _fault(value) is None
    }
    answers = answers_of(sorted(wanted, key=lambda one: one.argv))
    return {name: _answered(name, layer, commands[name], answers, root) for name, layer in hosts.items()}


def _answered(
    host: str, layer: Layer, commands: Mapping[KeyPath, Any], answers: Mapping[SecretCommand, Answer], root: Path
) -> tuple[Layer, list[Problem]]:
    problems, values = list[Problem](), layer.values
    for path, value in commands.items():
        found = _fault(value) or _secret(path, SecretCommand(tuple(value[COMMAND]), root), answers)
        values = _replaced(values, path, found if isinstance(found, Secret) else None)
        if isinstance(found, CommandFault):
            where = origin_of(dict(layer.origins), (*path, *found.below))
            problems.append(Problem(where, (*path, *found.below), found.text, host, code=found.code))
    return replace(layer, values=values) if commands else layer, problems


def _secret(path: KeyPath, command: SecretCommand, answers: Mapping[SecretCommand, Answer]) -> Secret | CommandFault:
    """Return what a command prints as the secret at a path, or what is wrong with it."""
    answer, shown = answers[command], f"`{command.text}`"
    if isinstance(answer, Secret) and (path[-1] == IN_PEM or "\n" not in answer.unmask()):
        return Secret(answer.unmask(), shown)
    if isinstance(answer, Secret):
        answer = "prints several lines, and this secret is one; with pass: [sh, -c, 'pass show NAME | head -n1']"
    return CommandFault(
        (), f"the command {shown} {answer}; next, by hand in the site's folder: {command.text}", "RW0205"
    )


def _replaced(values: Mapping[str, Any], path: KeyPath, secret: Secret | None) -> dict[str, Any]:
    """Return values with another one at a path; without it where the secret is missing."""
    first, *below = path
    if below:
        return {**values, str(first): _replaced(values[str(first)], tuple(below), secret)}
    if secret is None:
        return {key: value for key, value in values.items() if key != first}
    return {**values, str(first): secret}


def _commands(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Yield each mapping in the place of a secret, with its path."""
    for pattern in SECRET_PATHS:
        yield from _mappings(values, pattern, ())


def _mappings(value: Any, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    if not isinstance(value, Mapping):
        return
    if not pattern:
        yield path, value
        return
    keys = list(value) if pattern[0] == "NAME" else [key for key in pattern[:1] if key in value]
    for key in keys:
        yield from _mappings(value[key], pattern[1:], (*path, key))


def _fault(value: Mapping[str, Any]) -> CommandFault | None:
    """Return what is wrong with a mapping in the place of a secret; None for a command that can be run."""
    if [*value] != [COMMAND]:
        return CommandFault((), f"must be text, or a command that prints it, {FORM}")
    words = value[COMMAND]
    if not isinstance(words, list | tuple) or not words:
        return CommandFault((COMMAND,), f"must be a list of words, {FORM}: no shell splits it")
    faults = (fault for index, written in enumerate(words) if (fault := _fault_of_word(index, written)))
    return next(faults, None)


def _fault_of_word(index: int, written: Any) -> CommandFault | None:
    """Return why this cannot be a word of a command."""
    below = (COMMAND, index)
    if isinstance(written, Secret):
        return CommandFault(below, "an encrypted value is not taken here, since it would show in the process list")
    if not isinstance(written, str):
        return CommandFault(below, "must be text: put it in quotes")
    if "\0" in written or not (written or index):
        return CommandFault(below, "must be a program" if not index else "must hold no NUL")
    if holds_jinja(written):
        return CommandFault(below, "Jinja is not evaluated here: write the value itself", "RW0215")
    if looks_secret(written):
        return CommandFault(below, "looks like a secret, and would show in the process list: let the program read it")
    return None
