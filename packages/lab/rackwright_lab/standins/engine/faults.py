"""Fault switches of the stand-in engine, read at its start and at each request.

The lab puts rules on a host as /etc/rackwright-lab/faults.json; its stand-in runtime binds the *folder*
/etc/rackwright-lab read-only to the same path of each container when it exists (the folder, so that a file replaced
later is seen by a running engine). TRTLLM_STANDIN_FAULTS names another file. Product code knows nothing of it.

    {"engine": [{"fault": "die_at_end_of_load", "when": {"version": "1.2.0rc6"}},
                {"fault": "slow_factor", "value": 5}]}

`when` limits a rule to engines whose facts are equal: version, port, model, drafting (true or false), and any
top-level option of the YAML file as `option.NAME`. So a new release can fail on a host whose old one serves.

Faults: load_seconds (number), never_ready, die_at_end_of_load, die_after_requests (count), die_after_seconds,
drop_tool_calls, answers (a table: the texts of a conversation's messages, one a line, or a plain prompt, to its answer,
which is a text or, of a conversation, a call as {"name": ..., "arguments": {...}}),
drop_turns (a chat template that loses all messages but the last),
runs_on (one that loses the end of a turn: a made-up question follows the answer),
cut_context (tokens of the prompt that are read, the last ones), requests_waiting (number that the metrics show),
repeat_bang (answers "!!!!..."), wrong_answers, answer (text, to every question), slow_factor (number),
model_id (text), unhealthy_after_seconds (number),
never_accepts (drafts are proposed, and none is right), accepts (list: draft tokens that the iterations of a request
accept in turn, over and over: [2, 1, 1, 0] is 75 % at the first position, 25 % at the second, exactly so where answers
are multiples of 8 tokens), hang_after_seconds (number: the engine's core stands still
while /health and the counters answer as before), spoils_samples (while drafting, answers are nonsense behind their
first token at any temperature but 0, as a real vLLM 0.32.0's on a CPU: github.com/vllm-project/vllm/issues/55005).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEFAULT_FILE = "/etc/rackwright-lab/faults.json"
NAMES = frozenset(
    {
        "load_seconds",
        "never_ready",
        "die_at_end_of_load",
        "die_after_requests",
        "die_after_seconds",
        "drop_tool_calls",
        "answers",
        "drop_turns",
        "runs_on",
        "cut_context",
        "requests_waiting",
        "repeat_bang",
        "wrong_answers",
        "answer",
        "slow_factor",
        "model_id",
        "unhealthy_after_seconds",
        "never_accepts",
        "accepts",
        "hang_after_seconds",
        "spoils_samples",
    }
)


class Faults:
    """The rules that hold for one engine; `facts` are what `when` is compared with."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self._file = Path(os.environ.get("TRTLLM_STANDIN_FAULTS", DEFAULT_FILE))

    def active(self) -> dict[str, Any]:
        """Return the faults in force now, name to value. Raises ValueError on an unknown name."""
        try:
            rules = json.loads(self._file.read_text(encoding="utf-8")).get("engine", [])
        except (FileNotFoundError, NotADirectoryError):
            return {}
        unknown = {rule["fault"] for rule in rules} - NAMES
        if unknown:
            raise ValueError(f"{self._file}: no such fault: {', '.join(sorted(unknown))}")
        return {rule["fault"]: rule.get("value", True) for rule in rules if self._applies(rule.get("when", {}))}

    def _applies(self, when: Mapping[str, Any]) -> bool:
        return all(self._facts.get(name) == value for name, value in when.items())
