"""Sends one streamed chat request and clocks it, as aiperf's own client does: row by row of profile_export.jsonl."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

Row = dict[str, Any]
HISTOGRAM = "histogram"
"""Key of a row for what is pooled, and is in no file of aiperf's."""
DRAFTS = {
    "spec_decode_steps": "num_spec_steps",
    "spec_decode_draft_tokens": "num_draft_tokens",
    "spec_decode_accepted_draft_tokens": "num_accepted_draft_tokens",
}
"""Its names for what vLLM adds to an answer."""


def sent(url: str, body: Row, seconds: float, phase: str, key: str | None) -> Row:
    """One request: its row, whether it was answered or not."""
    began, first, usage, drafts = time.time_ns(), 0, Row(), Row()
    error: Row | None = None
    try:
        for event in _events(url, body, seconds, key):
            usage = event.get("usage") or usage
            drafts = (event.get("metrics") or {}).get("speculative_decoding") or drafts
            if not first and any(_says(choice["delta"]) for choice in event["choices"]):
                first = time.time_ns()
        if not first or not usage:
            error = {"code": None, "type": "InvalidInferenceResultError", "message": "no token in the answer"}
    except _RefusedError as refused:
        error = {"code": refused.status, "type": "HTTPError", "message": str(refused)}
    except (OSError, http.client.HTTPException, ValueError) as failed:
        error = {"code": None, "type": type(failed).__name__, "message": str(failed)}
    ended = time.time_ns()
    metadata = {"benchmark_phase": phase, "request_start_ns": began, "request_end_ns": ended}
    metrics = {} if error else _metrics(began, first, ended, usage, drafts)
    return {"metadata": metadata, "metrics": metrics, "error": error, HISTOGRAM: drafts.get("acceptance_histogram", [])}


class _RefusedError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def _events(url: str, body: Row, seconds: float, key: str | None) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
    try:
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", **headers}
        )
        answer = connection.getresponse()
        if answer.status != 200:
            raise _RefusedError(answer.status, answer.read(300).decode(errors="replace"))
        for raw in answer:
            text = raw.decode().strip()
            if text.startswith("data: ") and text != "data: [DONE]":
                yield json.loads(text.removeprefix("data: "))
    finally:
        connection.close()


def _says(delta: Row) -> bool:
    return any(delta.get(key) for key in ("content", "reasoning_content", "reasoning", "tool_calls"))


def _metrics(began: int, first: int, ended: int, usage: Row, drafts: Row) -> Row:
    tokens = int(usage["completion_tokens"])
    between = (ended - first) / 1e6 / max(tokens - 1, 1)
    found = {
        "time_to_first_token": ((first - began) / 1e6, "ms"),
        "inter_token_latency": (between, "ms"),
        "request_latency": ((ended - began) / 1e6, "ms"),
        "usage_completion_tokens": (tokens, "tokens"),
        "usage_prompt_tokens": (int(usage["prompt_tokens"]), "tokens"),
        "output_sequence_length": (tokens, "tokens"),
    }
    for name, counted in DRAFTS.items():
        found |= {name: (drafts[counted], "count")} if drafts else {}
    return {name: {"value": value, "unit": unit} for name, (value, unit) in found.items()}
