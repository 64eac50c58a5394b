"""The receiver of messages between and during deploys: a command, or a webhook."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from rackwright.addresses import is_loopback
from rackwright.settings.message_formats import FORMATS, MessageFormat, Template, problem_of
from rackwright.settings.misfit import MisfitError
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Frozen, Line, OneLine, words

CODE = "RW0104"
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}: ?[!-~]([ -~]*[!-~])?\Z")
_URL = re.compile(r"https?://[!#-&(-;=?-\[\]-_a-z~]+\Z")
"""Printable ASCII without blanks, quotes and backslashes: it becomes a quoted word of curl's configuration."""
_ALERTS = "/api/v2/alerts"


class Notify(Frozen):
    """The receiver of hosts' hangs, restarts, repairs and drift, and of bad ends of runs; default: none."""

    command: Annotated[tuple[Line, ...], BeforeValidator(words)] = ()
    """Program and arguments, never through a shell, with the message on standard input; hosts run it as root, runs as
    their user. RACKWRIGHT_KIND, _KEY, _STATE, _HOSTS, _TITLE and _TEXT are in its environment.
    """
    url: OneLine | None = None
    """Webhook to POST messages to. It is a secret: who has Slack's or Mattermost's address may write there."""
    header: OneLine | None = None
    """One header for the webhook, as `Authorization: Bearer TOKEN`."""
    format: MessageFormat | None = None
    """Form of a message. Default: `json` to a webhook, `text` to a command.

    `mail` is `text` behind a subject, for sendmail; `json` is filled from `template`.
    """
    template: Line | None = None
    """JSON with placeholders in quotes, as `{"title": "<title>", "body": "<text>"}`, for `format: json`.

    Placeholders: kind, key, state, severity, time, until, host, hosts, title, text.
    """
    per_hour: int = Field(default=20, ge=1, le=1000)
    """Messages that one host sends an hour at most; what is more waits, and goes out as one sum."""

    @property
    def is_set(self) -> bool:
        """True if someone is notified."""
        return bool(self.command or self.url)

    @property
    def form(self) -> Template:
        """The template of its messages."""
        if self.template:
            return Template(self.template)
        return FORMATS[self.format or ("json" if self.url else "text")]

    @field_validator("url")
    @classmethod
    def _reachable(cls, value: Secret | None) -> Secret | None:
        if value is not None and not (_URL.match(value.unmask()) and _server_of(value)):
            raise ValueError("must be http:// or https:// with a server, in ASCII without blanks and quotes")
        return value

    @field_validator("header")
    @classmethod
    def _one_header(cls, value: Secret | None) -> Secret | None:
        if value is not None and not _HEADER.match(value.unmask()):
            raise ValueError("must be a header as `Authorization: Bearer TOKEN`")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Notify:
        for key, text in self._misfits():
            if text:
                raise MisfitError(text, "notify", key, code=CODE)
        return self

    def _misfits(self) -> tuple[tuple[str, str], ...]:
        both = "is set beside notify.command: take one of the two"
        alone = "has no meaning without notify.url"
        no_target = "has no meaning without notify.url or notify.command"
        url, is_posted = self.url, self.url is not None
        return (
            ("url", both if url and self.command else ""),
            ("header", alone if self.header and not url else ""),
            ("header", _in_clear(url) if self.header and url else ""),
            ("format", no_target if self.format and not self.is_set else ""),
            ("format", _no_body(self.format) if is_posted else ""),
            ("url", _no_alertmanager(url) if url and self.format == "alertmanager" else ""),
            ("template", "is for `format: json` alone" if self.template and self.format not in (None, "json") else ""),
            ("template", problem_of(self.template) if self.template is not None else ""),
        )


def _server_of(url: Secret) -> str:
    try:
        found = urlsplit(url.unmask())
        return found.hostname or "" if found.port != 0 else ""
    except ValueError:
        return ""


def _in_clear(url: Secret) -> str:
    is_safe = url.unmask().startswith("https://") or is_loopback(_server_of(url))
    return "" if is_safe else "would go to notify.url in clear: write https:// there"


def _no_body(form: str | None) -> str:
    return f"{form} is for a command; a webhook takes slack, mattermost, alertmanager or json" if form in _PLAIN else ""


_PLAIN = ("text", "mail")


def _no_alertmanager(url: Secret) -> str:
    path = urlsplit(url.unmask()).path
    return "" if path.endswith(_ALERTS) else f"must end in {_ALERTS} for `format: alertmanager`"
