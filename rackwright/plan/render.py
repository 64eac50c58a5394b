"""Templates become text: Jinja2 with StrictUndefined.

What a site may edit comes from its `templates/`, or else from the shipped ones; what nobody should, from the concerns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Text of a template of this site. Raises SettingsError naming the template and the value that is missing."""
    return _render(template, [site / "templates", *SHIPPED], values)


def render_own(template: str, /, **values: Any) -> str:
    """Text of a template that is no site's to edit: it lies beside its concern."""
    return _render(template, script_folders(), values)


def _render(template: str, places: Sequence[Path], values: Mapping[str, Any]) -> str:
    try:
        return _environment(tuple(places)).get_template(template).render(**values)
    except BROKEN as error:
        line = f":{error.lineno}" if isinstance(error, TemplateSyntaxError) else ""
        name = getattr(error, "name", None) if isinstance(error, TemplateError) else None
        why = getattr(error, "message", None) or error
        text = f"templates/{name or template}{line}: {why}; next: fix it, then: rackwright check INVENTORY"
        raise SettingsError(text, code="RW0507") from error


BROKEN = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, OSError)
"""What a template can raise: UnicodeDecodeError and a missing file are among them."""


@cache
def _environment(places: tuple[Path, ...]) -> Environment:
    """Compiled templates are kept, and compiled anew when their file has changed."""
    return Environment(
        loader=ChoiceLoader([FileSystemLoader(place) for place in places]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )


class Expanded(str):
    """A word of an Exec line in which systemd puts the values of variables in, written `${NAME}`."""


def systemd_word(word: str) -> str:
    """One word of an Exec line: specifiers and variables doubled, quoted where systemd would split."""
    text = word.replace("%", "%%")
    if isinstance(word, Expanded):
        return text
    text = text.replace("$", "$$")
    if text and all(char.isalnum() or char in "-_./:=,@+%$[]" for char in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def systemd_command(groups: list[list[str]]) -> str:
    """A long command, one group of words a line, so that a person can read it in `systemctl cat`."""
    return " \\\n    ".join(" ".join(systemd_word(word) for word in group) for group in groups)
