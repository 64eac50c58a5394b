"""The row of the kernel's messages about GPUs, and the Xids that mean broken hardware. Pure."""

from __future__ import annotations

import re

from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict, host_rule

GPU_ERRORS = "GPU errors since the switch"


HARDWARE_XIDS = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
"""Errors of memory, links, firmware or the bus, which no other release cures (docs.nvidia.com/deploy/xid-errors).

Others may be the program's own, or its end (45 follows every kill): they are shown and refuse nothing.
"""


FALLEN = "NVRM: .*fallen off the bus"
"""The driver's messages about a GPU that is gone; not always with an Xid (NVIDIA/NVSentinel#155)."""


HARDWARE = rf"NVRM: Xid \([^)]*\): ({'|'.join(map(str, sorted(HARDWARE_XIDS)))})([^0-9]|$)|{FALLEN}"
"""Lines of the kernel that tell of broken hardware, as `grep -E` and Python both read it."""


@host_rule
def gpu_errors(home: str) -> Question:
    """Ask for the kernel's messages about GPUs since the last switch of the endpoint with folder `home` (DECISIONS 29).

    home: its `switched-at` has the boot and the time since it, by the monotonic clock.
    """

    def judge(answer: Answer) -> Verdict:
        lines = [row for row in answer.body.splitlines() if row.strip()]
        broken = [row for row in lines if re.search(HARDWARE, row)]
        return Verdict(not broken, (broken or lines or ["none"])[-1])

    script = (
        f"at=$(tr '\\n' ' ' <{home}/switched-at 2>/dev/null)\n"
        "read -r boot </proc/sys/kernel/random/boot_id\n"
        # After a reboot all messages of this boot came later.
        'case $at in "$boot "*) from=${at#* } ;; *) from=0 ;; esac\n'
        "journalctl --boot _TRANSPORT=kernel --no-pager --output short-monotonic 2>/dev/null |"
        " awk -v from=\"$from\" 'substr($0, 2) + 0 >= from' |"
        f" sed 's/.* NVRM: /NVRM: /' | grep -E 'NVRM: Xid|{FALLEN}' | tail -n 20\nprintf '\\n0 0'"
    )
    return Question(GPU_ERRORS, script, judge, timeout=60)
