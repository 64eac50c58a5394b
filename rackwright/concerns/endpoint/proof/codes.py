"""Which code a refused row of the gate has, by the row's name: hosts tell rows by their names alone."""

from __future__ import annotations

from collections.abc import Iterable

CODES = {
    "the model's name": "RW0401",
    "the engine's version": "RW0402",
    "the release that runs": "RW0403",
    "GPUs inside the container": "RW0404",
    "GPU errors since the switch": "RW0405",
    "a chat answer": "RW0406",
    "a tool call": "RW0407",
    "harmony channels": "RW0408",
    "no repeated token": "RW0409",
    "streaming": "RW0410",
    "accepted drafts": "RW0411",
    "speed": "RW0412",
    "GPU error counters": "RW0413",
    "engine steps": "RW0414",
    "its key is asked for": "RW0415",
    "threads in the container": "RW0416",
    "sampled answers": "RW0417",
    "quality of answers": "RW0418",
    "plain text": "RW0427",
    "beside its peers": "RW0424",
    "a long prompt": "RW0428",
    "network between the hosts": "RW0430",
    "still serving": "RW0439",
}
OTHER = "RW0400"
"""Of a row that this version does not know: a host may finish the switch of another one."""


def code_of(rows: Iterable[str]) -> str:
    """Return the code of the first refused row."""
    return next((CODES.get(row_of(row), OTHER) for row in rows), OTHER)


def row_of(label: str) -> str:
    """Return the row's name, without the endpoint before it where one job asks several."""
    return label if label in CODES else label.partition(": ")[2] or label
