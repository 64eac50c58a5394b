"""Render templates as text: Jinja2 with StrictUndefined.

Templates that a site may edit come from its `templates/`, or else from the shipped ones; others from the concerns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError

from rackwright.hostside import script_folders
from rackwright.messages import SettingsError

PACKAGE = Path(__file__).parents[1]
SHIPPED = (PACKAGE / "site" / "templates", PACKAGE.parent / "templates")
"""In a wheel, and in a checkout."""


def render(template: str, site: Path, /, **values: Any) -> str:
    """Return the text of a template of this site. Raises SettingsError with the template and the missing value."""
    return _render(template, [site / "templates", *SHIPPED], values)


def render_own(template: str, /, **values: Any) -> str:
    """Return the text of a template that a site cannot edit: it is stored beside its concern."""
    return _render(template, script_folders(), values)


def _render(template: str, places: Sequence[Path], values: Mapping[str, Any]) -> str:
    try:
        return _plain(_environment(tuple(places)).get_template(template).render(**values))
    except BROKEN as error:
        at = f":{error.lineno}" if isinstance(error, TemplateSyntaxError) else ""
        name = getattr(error, "name", None) if isinstance(error, TemplateError) else None
        why = getattr(error, "message", None) or error
        text = f"templates/{name or template}{at}: {why}; next: fix it, then: rackwright check INVENTORY"
        raise SettingsError(text, code="RW0507") from error


BROKEN = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, OSError)
"""Errors that a template can raise, UnicodeDecodeError and a missing file included."""


def _plain(text: str) -> str:
    """Return a text that is valid in a host's file. Raises ValueError for a NUL, at which systemd's reader stops."""
    if "\0" in text:
        raise ValueError("the character U+0000 is not allowed")
    return text


class _Files(FileSystemLoader):
    """Templates of one folder; a pipe, a folder or a broken link with a template's name is not skipped."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Return a template's text. Raises OSError for what is not a file."""
        for folder in self.searchpath:
            path = Path(folder) / template
            if os.path.lexists(path) and not path.is_file():
                raise OSError("is not a file")
        return super().get_source(environment, template)


@cache
def _environment(places: tuple[Path, ...]) -> Environment:
    """Return the environment: compiled templates are cached, and compiled again when their file has changed."""
    return Environment(
        loader=ChoiceLoader([_Files(folder) for folder in places]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )


class Expanded(str):
    """An argument of an Exec line in which systemd expands variables, written `${NAME}`."""


def systemd_word(argument: str) -> str:
    """Return one argument of an Exec line: specifiers and variables doubled, quoted where systemd would split."""
    text = argument.replace("%", "%%")
    if isinstance(argument, Expanded):
        return text
    text = text.replace("$", "$$")
    if text and all(char.isalnum() or char in "-_./:=,@+%$[]" for char in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def systemd_command(groups: list[list[str]]) -> str:
    """Return a long command, one group of arguments in each line, so that people can read it in `systemctl cat`."""
    return " \\\n    ".join(" ".join(systemd_word(argument) for argument in group) for group in groups)
