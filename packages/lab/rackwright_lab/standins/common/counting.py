"""A serving engine that keeps Prometheus counters: requests, tokens, drafted and accepted tokens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..engine.serve.state import Engine
from ..engine.speculation import draft_hits


@dataclass
class CountingEngine(Engine):
    """The engine of one server. `served` are the options it was started with, `name` what its metrics call it."""

    served: dict[str, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    positions: Counter[int] = field(default_factory=Counter)

    def record(self, request_id: str, prompt: int, generated: int, copied: bool = False) -> float:
        """Count one finished request; return its decoded tokens per iteration."""
        steps, drafts = self.drafted(generated, copied)
        self.counts.update(requests=1, prompt=prompt, generated=generated, steps=steps)
        if self.draft_length:
            self.counts.update(drafts=steps, proposed=drafts.proposed, accepted=drafts.accepted)
            hits = draft_hits(generated, self.draft_length, self.accepts()) if drafts.accepted else []
            self.positions.update(position for hit in hits for position in range(hit))
        return super().record(request_id, prompt, generated, copied)


def prometheus(rows: list[tuple[str, str, str, float]]) -> str:
    """Return metrics in Prometheus' text format, from rows of name, kind, labels and value."""
    lines, typed = list[str](), set[str]()
    for name, kind, labels, value in rows:
        named = name.removesuffix("_count").removesuffix("_sum") if kind == "histogram" else name
        if named not in typed:
            lines.append(f"# TYPE {named} {kind}")
            typed.add(named)
        lines.append(f"{name}{{{labels}}} {float(value)}")
    return "\n".join(lines) + "\n"
