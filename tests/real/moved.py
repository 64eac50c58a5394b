"""What newer versions of vLLM do otherwise than 0.14.1, after which the stand-in was made; no deploy meets it."""

from __future__ import annotations

ADDED = (
    "choices[].routed_experts", "ec_transfer_params", "metrics", "prompt_text", "usage.completion_tokens_details",
)  # fmt: skip
ANSWERS = {
    "0.32.0": {
        *(f"shape.{name}: the real one has NoneType, the stand-in nothing" for name in ADDED),
        "shape.system_fingerprint: the real one has str, the stand-in NoneType",
        # It leaves out what is empty, and `reasoning_content` is `reasoning` alone.
        "shape.choices[].message.reasoning_content: the real one has nothing, the stand-in NoneType",
        "shape.choices[].message.tool_calls: the real one has nothing, the stand-in []",
        # A refusal names the field that is wrong.
        *(
            f"shape.error.param: the real one has {name}, the stand-in NoneType"
            for name in ("body.1", "body.messages", "body.temperature", "max_tokens", "input_tokens")
        ),
    }
}
"""Lines of tests.real.asking.differences, by version."""
STREAMS = "its pieces leave out what is empty, and the last one has a fingerprint"
REQUESTS = {
    "0.32.0": {"a chat that streams": STREAMS, "a chat that streams without usage": STREAMS},
}
"""Requests whose answers differ in more than that, and why."""
COMMAND_LINES = {
    "0.32.0": {"a file with a mapping": "its loader takes one"},
}
