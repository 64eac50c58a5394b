"""The row of the network that NCCL has chosen between the hosts of an endpoint. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Verdict, host_rule

TRANSPORT = "network between the hosts"


CARRIERS = {"Using network Socket": "plain TCP (Socket)", "MNNVL 1": "NVLink between hosts (MNNVL)"}
"""Meanings of NCCL's terms, where NCCL does not explain them."""


NO_RDMA = r"Failed to open libibverbs[^ ]*|NET/IB : No device found"
"""Why NCCL has not taken RDMA: the image has no library for it, or the container no device."""


@host_rule
def transport(unit: str, container: str, wanted: str) -> Question:
    """Check which network NCCL has chosen between the hosts of an endpoint, by its own log: it takes TCP silently.

    unit, container: of the endpoint on this host. wanted: `rdma`, `nvlink`, or `any`, which is well with all.
    """

    def judge(answer: Answer) -> Verdict:
        notices = [row.strip().partition(" ")[::2] for row in answer.body.splitlines() if row.strip()]
        chosen = [(number, words) for number, words in notices if not re.match(NO_RDMA, words)]
        if not chosen:
            return Verdict(wanted == "any", "its log says nothing of NCCL's networks", measured=False)
        sockets = any(re.search(r"NET/Socket|network Socket", words) for _, words in chosen)
        nvlink = any("MNNVL" in words for _, words in chosen)
        if {"rdma": not sockets, "nvlink": nvlink}.get(wanted, True):
            return Verdict(True, _carried(chosen))
        why = [words for _, words in notices if re.match(NO_RDMA, words)] if wanted == "rdma" else []
        also = f"; NCCL says: {', '.join(why)}" if why else ""
        return Verdict(False, f"{_carried(chosen)}, and {wanted} was asked for{also}")

    script = (
        f"since=$(docker inspect --format '{{{{.State.StartedAt}}}}' {container}) || exit 1\n"
        f'journalctl --unit {unit} --since "$(date -d "$since" \'+%F %T\')" --no-pager --output cat 2>/dev/null |'
        " grep -aoE 'NCCL INFO (Using network [A-Za-z]+|MNNVL 1|"
        f"{NO_RDMA})|via NET/[A-Za-z]+|via P2P/MNNVL' |"
        " sed 's/^NCCL INFO //' | LC_ALL=C sort | uniq -c | awk '{ $1 = $1; print }' | tail -n 20\nprintf '\\n0 0'"
    )
    return Question(TRANSPORT, script, judge, timeout=60)


def _carried(chosen: Sequence[tuple[str, str]]) -> str:
    """Return counted phrases of NCCL's log as a sentence: `plain TCP (Socket): 8 channels via NET/Socket`."""
    channels = [
        f"{number} channel{'s' * (number != '1')} {words}" for number, words in chosen if words.startswith("via ")
    ]
    networks = [words for _, words in chosen if not words.startswith("via ")]
    named = [CARRIERS.get(words, words.removeprefix("Using network ")) for words in networks]
    return ": ".join(", ".join(part) for part in (named, channels) if part)[:300]
