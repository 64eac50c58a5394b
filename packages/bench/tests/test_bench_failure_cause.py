"""The cause that is taken out of aiperf's log: the reason of the service that failed, not its controller's."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright_bench.aiperf.failure_cause import failure_cause
from rackwright_bench.measuring import _found

LOGGED = """\
09:00:01.000 INFO     Services are being configured (control.py:12)
09:00:02.000 ERROR    Requests could not be made: VocabularyError("no file of merges in 'here/there'") (requests.py:93)
Traceback (most recent call last):
  File "requests.py", line 93, in make
VocabularyError: no file of merges in 'here/there'
09:00:02.100 ERROR    Error running Hook(start): Failed to perform operation 'Configure Profiling' (mixin.py:15)
"""
WRAPPED = """\
│ • Service: control                                   │
│    Operation: Starting                               │
│    Error: HookError                                  │
│    Reason: HookError("start: Failed to perform       │
│            operation 'Configure Profiling'")         │
│    Cause: LifecycleOperationError("Failed to perform │
│            operation 'Configure Profiling'")         │
"""
REASON = """\
│ • Services: 2 services: clock, workers               │
│    Operation: Configure Profiling                    │
│    Error: CommandError                               │
│    Reason: The requests could not be made:           │
│            VocabularyError: no file of merges in     │
│            'here/there'                              │
│                                                      │
"""


def panel(*rows: str) -> str:
    return f"\n╭─ AIPerf System Exit Errors ─╮\n{''.join(rows)}╰─────────╯\nLog File: /runs/errors/aiperf.log\n"


MADE = "The requests could not be made: VocabularyError: no file of merges in 'here/there'"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (LOGGED + panel(REASON, WRAPPED), MADE),
        (LOGGED + panel(WRAPPED, REASON), MADE),
        (
            LOGGED + panel(WRAPPED),
            "Requests could not be made: VocabularyError(\"no file of merges in 'here/there'\")",
        ),
        (
            panel("│    Reason: Failed to perform operation 'X' │\n│    Cause: OSError(28, 'No space left') │\n"),
            "OSError(28, 'No space left')",
        ),
        ("Traceback\n  File x\nImportError: no module\nbye\n", "ImportError: no module"),
        (panel(WRAPPED), "LifecycleOperationError(\"Failed to perform operation 'Configure Profiling'\")"),
        ("one\ntwo\n", "two"),
        ("", "it printed nothing"),
    ],
)
def test_the_cause_is_what_one_can_act_on(log: str, cause: str) -> None:
    assert failure_cause(log) == cause


def test_a_tokenizer_that_is_not_read_has_its_next_command(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="--tokenizer DIR"):
        _found(tmp_path, "aiperf ended with 1: Failed to load tokenizer 'x'")
    with pytest.raises(Exception, match=r"aiperf\.log$"):
        _found(tmp_path, "aiperf ended with 1: no space left")
