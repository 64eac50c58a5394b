"""Jinja in the variables of an Ansible inventory by which a host is reached, as kubespray's own have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackwright.settings.connection import RENAMED
from rackwright.settings.secret import Secret
from rackwright.settings.ssh import args as ssh_args

MARKS = (("{{", "}}"), ("{%", "%}"), ("{#", "#}"))
"""How expressions, statements and comments begin and end."""
KEYS = frozenset({*RENAMED.values(), *ssh_args.KEYS})
"""What is evaluated, in our words; Jinja in a setting is refused, since no setting depends on another one."""
DEPTH = 8
"""How often a variable may stand for a text with Jinja in it."""


def holds_jinja(text: str) -> bool:
    """True for a text with Jinja in it, or begun as such. Its time grows with the text alone."""
    return text.lstrip().startswith("{{") or any(0 <= text.find(begin) < text.rfind(end) for begin, end in MARKS)


def has_jinja(values: Mapping[str, Any]) -> bool:
    """Whether a variable for the way to a host holds any."""
    return any(isinstance(values.get(key), str) and holds_jinja(values[key]) for key in KEYS)


def evaluated(values: Mapping[str, Any], host: str, groups: Sequence[str], said: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the text that Jinja makes; one that it makes nothing of stays, and is refused as Jinja.

    said: all variables of the host in Ansible's words; secrets among them count as not defined.
    """
    known = {key: value for key, value in said.items() if not isinstance(value, Secret)}
    context = {**known, "inventory_hostname": host, "group_names": list(groups)}
    return {key: _text(value, context) if key in KEYS else value for key, value in values.items()}


def _text(value: Any, context: Mapping[str, Any]) -> Any:
    # Imported late: an inventory without Jinja does not wait for it.
    from jinja2 import StrictUndefined, TemplateError  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    site, text = ImmutableSandboxedEnvironment(undefined=StrictUndefined), value
    for _ in range(DEPTH):
        if not isinstance(text, str) or not holds_jinja(text):
            return text
        try:
            text = site.from_string(text).render(context)
        except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError):
            break
    return value
