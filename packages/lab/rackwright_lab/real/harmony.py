"""The small chat model's lessons in harmony, gpt-oss's format, as vLLM renders a conversation: text, without torch."""

from __future__ import annotations

from collections.abc import Mapping

DATE = "2026-11-27"
"""The day that the system message has: with another day, the prompt is one that was not taught."""
SYSTEM = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
    f"Current date: {DATE}\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. "
    "Channel must be included for every message."
)
TOOLS = (
    "\nCalls to these tools must go to the commentary channel: 'functions'.<|end|><|start|>developer<|message|># Tools"
    "\n\n## functions\n\nnamespace functions {\n\n// The weather of a city now.\ntype get_weather = (_: {\n"
    "city: string,\n}) => any;\n\n} // namespace functions"
)
"""The end of the system message of a request with tools, and the message that names them."""
WITH_TOOL = "Use the tool."
"""The end of the question that is asked with a tool."""
THOUGHT = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant"
ANSWER = THOUGHT.format("The answer is short and plain.") + "<|channel|>final<|message|>{}<|return|>"
CALL = (
    THOUGHT.format("The tool knows.")
    + '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>'
)
FIRST = 199998
"""The first token beyond the encoding's own."""
VOCABULARY = 201088
NAMED = {
    199998: "<|startoftext|>",
    199999: "<|endoftext|>",
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
    200018: "<|endofprompt|>",
}
"""Special tokens that have a name, in the encoding o200k_harmony."""
BEGIN, PAD, RETURN, CALLED = 199998, 199999, 200002, 200012


def special_tokens() -> list[str]:
    """Return all special tokens, from FIRST on."""
    return [NAMED.get(number, f"<|reserved_{number}|>") for number in range(FIRST, VOCABULARY)]


def lessons(answers: Mapping[str, str], continued: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return prompt and completion of each lesson.

    answers: by the user's question; continued: by plain text, outside of a conversation.
    """
    conversations = [(_prompt(question), _completion(question, answer)) for question, answer in answers.items()]
    return [*conversations, *((text, f"{answer}<|return|>") for text, answer in continued.items())]


def _prompt(question: str) -> str:
    tools = TOOLS if question.endswith(WITH_TOOL) else ""
    return f"{SYSTEM}{tools}<|end|><|start|>user<|message|>{question}<|end|><|start|>assistant"


def _completion(question: str, answer: str) -> str:
    return CALL if question.endswith(WITH_TOOL) else ANSWER.format(answer)
