"""The ways in which an answer is judged, each a kind in a question's `judge`. Pure but for the import of a validator.

Regular expressions, in a `pattern` and within a JSON schema, are those of Rust's regex, as jsonschema-rs brings it:
their time grows with the text alone. Python's `re` can take years for one answer that a model makes up.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rackwright.quality.chat_answer import ChatAnswer, ToolCall, parsed

if TYPE_CHECKING:
    from jsonschema_rs import Validator

THOUSANDS = r"(?:[,\u00a0\u2009\u202f]|\{,\}|\\[,!])"
"""Between thousands: a comma, a space that does not break or is thin, and what TeX has for these."""
NUMBER = re.compile(rf"(?:(?<![\w)])[-−+])?(?:\d+(?:{THOUSANDS}\d{{3}})*(?:\.\d+)?|\.\d+)")
"""A number as English text has it. 10-12 has no minus."""
FENCE = re.compile(r"\A```[a-zA-Z]*\n(.*)\n```\Z", re.DOTALL)
LONGEST = 1_000_000
"""Characters of an answer that a judge reads."""
Text = Annotated[str, Field(min_length=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
"""JSON as Python reads it also has NaN, which equals no answer, and Infinity."""


class Strict(BaseModel):
    """A part of a question: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Exact(Strict):
    """The whole answer is one of these texts, without regard to spaces around it."""

    kind: Literal["exact"]
    answer: Text | Annotated[list[Text], Field(min_length=1)]
    ignore_case: bool = False


class Number(Strict):
    """The last number of the answer is this one."""

    kind: Literal["number"]
    answer: Finite
    within: Annotated[Finite, Field(ge=0)] = 0
    """Difference that is still right."""


class Pattern(Strict):
    """A regular expression is found in the answer."""

    kind: Literal["pattern"]
    pattern: Text

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        _compiled({"pattern": pattern}, "not a regular expression, or one with look-around or back references")
        return pattern


class JsonSchema(Strict):
    """The answer is JSON, maybe in a code fence, that fits a schema."""

    kind: Literal["json_schema"]
    json_schema: dict[str, Any] = Field(alias="schema")

    @field_validator("json_schema")
    @classmethod
    def _compiles(cls, schema: dict[str, Any]) -> dict[str, Any]:
        _compiled(schema, "not a JSON schema, or one that refers to another file")
        return schema


class Contains(Strict):
    """The answer has all of these texts, and none of those in `without`."""

    kind: Literal["contains"]
    answer: Text | Annotated[list[Text], Field(min_length=1)]
    without: list[Text] = []
    ignore_case: bool = True


class CallsTool(Strict):
    """The answer calls this tool with these arguments; others that it has beside them are not judged."""

    kind: Literal["tool_call"]
    name: Text
    arguments: dict[str, Any] = {}
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """Schema of the arguments."""

    @field_validator("json_schema")
    @classmethod
    def _compiles(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is not None:
            _compiled(schema, "not a JSON schema, or one that refers to another file")
        return schema


class Command(Strict):
    """A command that runs on this machine, without a shell, with the answer on its standard input, ends with 0."""

    kind: Literal["command"]
    argv: Annotated[list[Text], Field(min_length=1)]
    timeout: Annotated[float, Field(gt=0, le=600)] = 10
    """Seconds; an answer that takes longer is wrong."""


Judge = Annotated[Exact | Number | Pattern | JsonSchema | Contains | CallsTool | Command, Field(discriminator="kind")]


def judged_right(judge: Judge, answer: ChatAnswer) -> bool:
    """Return True if an answer is right, by any kind of judge but a command. Raises TypeError for a command."""
    if isinstance(judge, Command):
        raise TypeError("a command runs; command_judge has it")
    if answer.error:
        return False
    rule: Callable[[Any, ChatAnswer], bool] = RULES[type(judge)]
    return rule(judge, answer)


def _exact(judge: Exact, answer: ChatAnswer) -> bool:
    return any(_plain(text, judge.ignore_case) == _plain(answer.text, judge.ignore_case) for text in _all(judge.answer))


def _contains(judge: Contains, answer: ChatAnswer) -> bool:
    text = _plain(answer.text, judge.ignore_case)
    wanted = (_plain(part, judge.ignore_case) for part in _all(judge.answer))
    return all(part in text for part in wanted) and not any(
        _plain(part, judge.ignore_case) in text for part in judge.without
    )


def _plain(text: str, ignore_case: bool) -> str:
    """Return a text as it is compared: composed, without spaces around it."""
    composed = unicodedata.normalize("NFC", text).strip()
    return composed.casefold() if ignore_case else composed


def _all(answer: str | list[str]) -> list[str]:
    return [answer] if isinstance(answer, str) else answer


def _number(judge: Number, answer: ChatAnswer) -> bool:
    found = last_number(answer.text)
    return found is not None and abs(found - Decimal(str(judge.answer))) <= Decimal(str(judge.within))


def last_number(text: str) -> Decimal | None:
    """Return the last number of a text; None without one. Digits of any script count."""
    digits = "".join(str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in text[-LONGEST:])
    found = NUMBER.findall(digits)
    try:
        return Decimal(re.sub(THOUSANDS, "", found[-1]).replace("−", "-")) if found else None
    except InvalidOperation:
        return None


def _pattern(judge: Pattern, answer: ChatAnswer) -> bool:
    return _fits({"pattern": judge.pattern}, answer.text[:LONGEST])


def _json_schema(judge: JsonSchema, answer: ChatAnswer) -> bool:
    fence = FENCE.search(answer.text)
    return _json_fits(judge.json_schema, fence[1] if fence else answer.text)


def _json_fits(schema: Mapping[str, Any], text: str) -> bool:
    try:
        return len(text) <= LONGEST and _fits(schema, parsed(text))
    except ValueError:
        return False


def _tool_call(judge: CallsTool, answer: ChatAnswer) -> bool:
    return any(_calls(judge, call) for call in answer.tool_calls)


def _calls(judge: CallsTool, call: ToolCall) -> bool:
    try:
        arguments = parsed(call.arguments or "{}")
    except ValueError:
        return False
    if call.name != judge.name or not isinstance(arguments, Mapping):
        return False
    fits = judge.json_schema is None or _fits(judge.json_schema, dict(arguments))
    return fits and all(key in arguments and _same(arguments[key], value) for key, value in judge.arguments.items())


def _same(found: Any, wanted: Any) -> bool:
    """Return True if two arguments mean the same: models write Paris and paris, 2 and 2.0."""
    if isinstance(wanted, str) and isinstance(found, str):
        return _plain(found, ignore_case=True) == _plain(wanted, ignore_case=True)
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    validator = _validator(json.dumps(schema))
    try:
        return bool(validator.is_valid(value))
    except ValueError:  # half a letter, or a number past all limits
        return False


@lru_cache(4096)
def _validator(schema: str) -> Validator:
    """Return what validates by a schema, in JSON. It fetches nothing, and its expressions never backtrack."""
    # 0.2 s, which most commands never need
    from jsonschema_rs import RegexOptions, validator_for  # noqa: PLC0415

    return validator_for(json.loads(schema), pattern_options=RegexOptions(), offline=True)


def _compiled(schema: Mapping[str, Any], why: str) -> None:
    """Raise ValueError if a schema or a regular expression is not valid."""
    from jsonschema_rs import ReferencingError, ValidationError  # noqa: PLC0415

    try:
        _validator(json.dumps(schema))
    except (ValidationError, ReferencingError, ValueError):
        raise ValueError(why) from None


RULES: Mapping[type[Strict], Callable[[Any, ChatAnswer], bool]] = {
    Exact: _exact,
    Number: _number,
    Pattern: _pattern,
    JsonSchema: _json_schema,
    Contains: _contains,
    CallsTool: _tool_call,
}
