"""One thing that a check has to say of an endpoint's settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from rackwright_engines.key_path import KeyPath
from rackwright_engines.move import Move


class Level(Enum):
    """Levels of a finding."""

    REFUSE = "refuse"
    """The engine would not start, or not serve: nothing is connected."""
    WARN = "warn"
    """It starts, and is probably not what was meant."""
    NOTE = "note"
    """Worth knowing; also what could not be checked."""


LONGEST = 200
"""Characters of a value in a message."""


def shown(value: object) -> str:
    """Return a value for a message: whole, or its beginning where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


@dataclass(frozen=True)
class Finding:
    """A problem at a key of an endpoint, how bad it is, and the right key and value if they are known."""

    path: KeyPath
    """Keys below the endpoint: `("engine", "moe_config", "backend")`; for bare options, keys below them."""
    text: str
    level: Level = Level.REFUSE
    right: Move | None = None
    link: str = ""
    code: str = field(kw_only=True, compare=False)
    """The argument for `rackwright explain`."""
    words: str = field(default="", compare=False)
    """The engine's own words for the same, to be found in its log; empty when they are not known."""
    near: str = field(default="", compare=False)
    """The known name that is one edit from the one that is refused; empty where none is."""
    overridable: bool = field(default=False, compare=False)
    """True where the engine may start anyway, so that an operator who knows better may deploy it."""
    sibling: bool = field(default=False, compare=False)
    """True where the two differ in digits alone, as `deepseekv4` and `deepseekv41` do."""

    def below(self, *above: str | int) -> Finding:
        """Return the same finding for the mapping that holds these options under `above`."""
        right = self.right and replace(self.right, path=self.right.path and (*above, *self.right.path))
        return replace(self, path=(*above, *self.path), right=right)

    @property
    def sentence(self) -> str:
        """Everything but the path and the level, in one sentence."""
        return "".join((self.text, f"; {self.right}" if self.right else "", f" ({self.link})" if self.link else ""))


def refused(findings: list[Finding]) -> list[Finding]:
    """Only what stops a deployment."""
    return [finding for finding in findings if finding.level is Level.REFUSE]
