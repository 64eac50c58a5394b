"""Formats of a message to operators: templates with placeholders as `<text>`, and their values. Pure.

A host fills the same templates (concerns/watch/host/notify.j2), and tests hold the two against each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

MessageFormat = Literal["slack", "mattermost", "alertmanager", "json", "text", "mail"]
PLACEHOLDERS = ("kind", "key", "state", "severity", "time", "until", "host", "hosts", "title", "text")
PLACEHOLDER = re.compile(r"<([a-z_]+)>")


class Template(NamedTuple):
    """A template of one message, and how a placeholder's value is written in it."""

    text: str
    escape: Literal["json", "slack", "none"] = "json"
    brackets: tuple[str, str] = ("", "")
    """Text before the first and after the last message, where one request carries several; empty where it cannot."""


_LABELS = {"alertname": "Rackwright", "instance": "<host>", "kind": "<kind>", "key": "<key>", "severity": "<severity>"}
_ANNOTATIONS = {"summary": "<title>", "description": "<text>", "hosts": "<hosts>"}
_ALERT = {"labels": _LABELS, "annotations": _ANNOTATIONS, "startsAt": "<time>", "endsAt": "<until>"}
_OWN = {name: f"<{name}>" for name in ("kind", "key", "state", "severity", "time", "host", "hosts", "title", "text")}
_MAIL = """\
Subject: [rackwright] <title>
Auto-Submitted: auto-generated
Content-Type: text/plain; charset=utf-8

<title>

<text>

sent by <host> at <time>
"""
FORMATS: Mapping[MessageFormat, Template] = {
    "slack": Template(json.dumps({"text": "*<title>*\n<text>"}), "slack"),
    "mattermost": Template(json.dumps({"username": "rackwright", "text": "**<title>**\n<text>"})),
    "alertmanager": Template(json.dumps(_ALERT), brackets=("[", "]")),
    "json": Template(json.dumps(_OWN)),
    "text": Template("<title>\n<text>\n", "none"),
    "mail": Template(_MAIL, "none"),
}


def filled(template: Template, values: Mapping[str, str]) -> str:
    """Return the message with each placeholder's value; other text in angle brackets stays."""
    body = PLACEHOLDER.sub(lambda found: _escaped(template, values.get(found[1]), found[0]), template.text)
    return f"{template.brackets[0]}{body}{template.brackets[1]}"


def _escaped(template: Template, value: str | None, as_written: str) -> str:
    if value is None or template.escape == "none":
        return as_written if value is None else value
    if template.escape == "slack":  # https://docs.slack.dev/messaging/formatting-message-text: these three alone
        value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value.replace("\\", "\\\\").replace('"', '\\"')


def problem_of(template: str) -> str:
    """Return why a site's own template makes no JSON message; empty where it does."""
    unknown = [name for name in PLACEHOLDER.findall(template) if name not in PLACEHOLDERS]
    if unknown:
        return f"has <{unknown[0]}>; the placeholders are {', '.join(f'<{name}>' for name in PLACEHOLDERS)}"
    if not PLACEHOLDER.search(template):
        return "has no placeholder, so each message would be the same: write <title> and <text> into it"
    try:
        json.loads(filled(Template(template), dict.fromkeys(PLACEHOLDERS, 'a "word"')))
    except ValueError as error:
        return f'is not JSON once its placeholders are filled: {error}; write a placeholder within quotes, as "<text>"'
    return ""
