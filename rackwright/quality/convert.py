"""Sets of questions that others use, as lines of a file of questions. Pure.

Read are GSM8K's `{question, answer: "... #### 42"}`, OpenAI evals' `{input, ideal}`, inspect-ai's `{input, target}`,
and what lm-evaluation-harness writes with `--log_samples`. An answer that is looked for is a number where it reads as
one; otherwise its text, as words of their own anywhere in the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from rackwright.messages import SettingsError
from rackwright.quality.judges import last_number

CODE = "RW3729"
STEPS = "\nThink step by step, and end with the number alone on the last line."
"""What GSM8K's questions, which say nothing of it, are asked for."""
FINAL = "####"
"""Where GSM8K's solutions have the answer."""
MOST_TOKENS = 2048
SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
READABLE = (
    "GSM8K (question, answer), OpenAI evals (input, ideal), inspect-ai (input, target), lm-eval (arguments, target)"
)
Row = Mapping[str, Any]


def converted(text: str, file: str) -> Iterator[str]:
    """Yield a line of a file of questions for each line of another set. Raises SettingsError with its line."""
    rows = [(number, row) for number, row in enumerate(text.split("\n"), 1) if row.strip()]
    digits = len(str(len(rows)))
    for at, (number, row) in enumerate(rows, 1):
        try:
            question = _question(json.loads(row))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            why = error if type(error) is ValueError else "not JSON, or not as that set has it"
            raise SettingsError(f"{file} line {number}: {why}; what is read: {READABLE}", code=CODE) from None
        yield json.dumps({"id": f"q-{at:0{digits}}", **question, "max_tokens": MOST_TOKENS}, ensure_ascii=False)


def _question(row: Row) -> dict[str, Any]:
    for keys, read in READERS.items():
        if keys <= row.keys():
            return read(row)
    raise ValueError(f"a set of another kind: it has {', '.join(sorted(row)) or 'no keys'}")


def _gsm8k(row: Row) -> dict[str, Any]:
    if FINAL not in row["answer"]:
        raise ValueError(f"its answer has no {FINAL} before the number")
    return {"messages": _asked(row["question"] + STEPS), "judge": _judge([row["answer"]])}


def _evals(row: Row) -> dict[str, Any]:
    ideal = row["ideal"]
    return {"messages": _asked(row["input"]), "judge": _judge(ideal if isinstance(ideal, list) else [ideal])}


def _inspect(row: Row) -> dict[str, Any]:
    if row.get("choices"):
        raise ValueError("its choices become a prompt in inspect-ai's solver, which this file does not have")
    target = row["target"]
    return {"messages": _asked(row["input"]), "judge": _judge(target if isinstance(target, list) else [target])}


def _samples(row: Row) -> dict[str, Any]:
    requests = list(row["arguments"].values())
    if len(requests) != 1 or not isinstance(requests[0].get("arg_1"), Mapping):
        raise ValueError("it compares likelihoods of given answers, and a chat endpoint only writes its own")
    prompt, options = requests[0]["arg_0"], requests[0]["arg_1"]
    stop = options.get("until") or []
    more = {"request": {"stop": stop[:4]}} if stop else {}
    return {"messages": _asked(_chat(prompt)), "judge": _judge([row["target"]]), **more}


def _chat(prompt: Any) -> Any:
    """Return the messages that the harness wrote as text for an endpoint with a chat template, or the text."""
    try:
        messages = json.loads(prompt)
    except ValueError:
        return prompt
    return messages if isinstance(messages, list) and messages and isinstance(messages[0], Mapping) else prompt


def _asked(prompt: Any) -> list[Row]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [{"role": message["role"], "content": message["content"]} for message in prompt]


def _judge(answers: Sequence[Any]) -> dict[str, Any]:
    texts = [str(answer).split(FINAL)[-1].strip() for answer in answers]
    if not texts or not all(texts):
        raise ValueError("it has no answer to look for")
    number = _number(texts[0]) if len(texts) == 1 else None
    if number is not None:
        return {"kind": "number", "answer": number}
    return {"kind": "pattern", "pattern": f"(?is)(?:^|\\W)(?:{'|'.join(map(_escaped, texts))})(?:\\W|$)"}


def _number(text: str) -> float | None:
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    if not number.is_finite() or last_number(text) != number:  # 0E1: no judge reads it as a number in an answer
        return None
    return int(number) if number == number.to_integral_value() else float(number)


def _escaped(text: str) -> str:
    """Return a text as an expression that finds it; `re.escape` also escapes what Rust's expressions do not."""
    return SPECIAL.sub(lambda mark: f"\\{mark[0]}", text)


READERS: Mapping[frozenset[str], Callable[[Row], dict[str, Any]]] = {
    frozenset({"arguments", "target", "doc"}): _samples,
    frozenset({"input", "ideal"}): _evals,
    frozenset({"input", "target"}): _inspect,
    frozenset({"question", "answer"}): _gsm8k,
}
