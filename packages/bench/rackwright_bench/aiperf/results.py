"""aiperf's files about one cell, read into figures. Pure but for the files.

profile_export.jsonl has a line a request, the failed ones with their error; profile_export_aiperf.json has the whole,
and is not there when every request has failed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError, printable
from rackwright_bench.figures.acceptance import by_answers
from rackwright_bench.figures.figures import Measured, Request

WHOLE, EACH = "profile_export_aiperf.json", "profile_export.jsonl"
HISTOGRAM = "pooled_spec_decode_acceptance_histogram"
PROFILING = "profiling"
"""The phase that counts; the other one is the warm-up."""
SAID = 200
"""Characters of an error that are kept."""


def read_results(folder: Path) -> Measured:
    """Return the cell that aiperf wrote into a folder. Raises RackwrightError where it is missing or makes no sense."""
    try:
        lines = (folder / EACH).read_text().splitlines()
        whole = (folder / WHOLE).read_text() if (folder / WHOLE).exists() else "{}"
        return measured(json.loads(whole), map(json.loads, lines))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RackwrightError(f"what aiperf wrote cannot be read: {error!r}", code="RW1505") from error


def measured(whole: Mapping[str, Any], each: Iterable[Mapping[str, Any]]) -> Measured:
    """Return the figures of a cell. Raises KeyError or TypeError for another form."""
    rows = [row for row in each if row["metadata"].get("benchmark_phase") == PROFILING]
    began = min((row["metadata"]["request_start_ns"] for row in rows), default=0)
    requests = tuple(_request(row, began) for row in rows if not row.get("error"))
    errors = _errors(rows)
    return Measured(
        requests=tuple(sorted(requests, key=lambda request: request.ended)),
        seconds=_seconds(whole, requests),
        input_tokens=_average(whole, "usage_prompt_tokens") or _average(whole, "input_sequence_length") or 0.0,
        short=int(_average(whole, "osl_mismatch_count") or 0),
        goodput=_average(whole, "goodput"),
        failed=sum(errors.values()),
        drafting=by_answers([row["metrics"] for row in rows if not row.get("error")], whole.get(HISTOGRAM) or {}),
        errors=tuple(f"{count} x {text}" for text, count in errors.most_common()),
    )


def _seconds(whole: Mapping[str, Any], requests: Sequence[Request]) -> float:
    """Return the time by which aiperf divides its own rates: slightly more than from first request to last token."""
    rate = _average(whole, "request_throughput")
    return len(requests) / rate if rate and requests else max((one.ended for one in requests), default=0.0) or 1.0


def _request(row: Mapping[str, Any], began: int) -> Request:
    values = {name: found["value"] for name, found in row["metrics"].items() if isinstance(found, dict)}
    return Request(
        ttft=values.get("time_to_first_token", values["request_latency"]),
        itl=values.get("inter_token_latency", 0.0),
        latency=values["request_latency"],
        ended=(row["metadata"]["request_end_ns"] - began) / 1e9,
        tokens=int(values.get("usage_completion_tokens", values.get("output_sequence_length", 0))),
    )


def _errors(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(_error_text(row["error"]) for row in rows if row.get("error"))


def _error_text(error: Any) -> str:
    if not isinstance(error, dict):
        return printable(str(error), longest=SAID)
    return printable(" ".join(_words(error)), longest=SAID)


def _words(error: Mapping[str, Any]) -> Iterator[str]:
    """Status, kind, and the cause, or else the message: what there is of them."""
    for key in ("code", "type"):
        if error.get(key):
            yield str(error[key])
    yield str(error.get("cause") or error.get("message") or "")


def _average(whole: Mapping[str, Any], name: str) -> float | None:
    found = whole.get(name)
    return float(found["avg"]) if isinstance(found, dict) and found.get("avg") is not None else None
