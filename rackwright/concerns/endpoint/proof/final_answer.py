"""Tell whether a text is the answer to 17 + 25: the number, with no more behind it than a chatty model says. Pure.

It imports nothing but Python's own library: hosts judge by this very file. A real vLLM whose sampling was broken
answered `42`, and then 162 pieces of nonsense.
"""

from __future__ import annotations

import re
import unicodedata

from rackwright.concerns.endpoint.proof.gibberish import FEW, SENTENCE_END, WORD, nonsense, reads_as_language

NUMBER = re.compile(r"(?<!\d)(?<!\d[.,])42(?!\d|[.,]\d)")
THOUGHTS_END = re.compile(
    r"</(?:\w+:)?(?:think|thinking|thoughts?|reasoning|analysis|reflection)>|\[/THINK\]|◁/think▷|"
    r"assistantfinal|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
"""Where a server without a reasoning parser leaves a model's thoughts in the content."""
THOUGHTS_BEGIN = re.compile(
    r"\s*(?:<(?:\w+:)?(?:think|thinking|thoughts?|reasoning|analysis|reflection)>|\[THINK\]|◁think▷)", re.IGNORECASE
)
MOST_WORDS, MOST_CHARACTERS = 40, 300
"""Behind the number, of what does not explain the sum."""
FEWEST = 6
"""Words without a sentence around them that can be nonsense: an English question has no such answer."""
EXPLAINED = 4
"""How many times as much an explanation may have."""


def has_number(content: str) -> bool:
    """Return True if the answer, and not only the thoughts before it, has the number."""
    return NUMBER.search(_answer_of(content)) is not None


def why_no_answer(content: str) -> str:
    """Return why a text that has the number is not an answer; empty when it is one."""
    why = nonsense(content)
    if why:
        return f"it makes no sense: {why}"
    if THOUGHTS_BEGIN.match(content) and not THOUGHTS_END.search(content):
        return ""
    answer = _answer_of(content)
    if not _explains(answer) and not reads_as_language(WORD.findall(answer)):
        return "it makes no sense: no words of a language"
    behind = NUMBER.split(answer)[-1]
    if not _explains(answer) and _babbles(behind):
        return "it makes no sense: no words of a language"
    words, times = len(WORD.findall(behind)), EXPLAINED if _explains(behind) else 1
    if words > MOST_WORDS * times or len(behind) > MOST_CHARACTERS * times:
        return f"{words} more words follow the number"
    return ""


def _answer_of(content: str) -> str:
    """Return the content without thoughts, unless it has nothing else; digits of any script as ASCII."""
    answer = THOUGHTS_END.split(content)[-1]
    return unicodedata.normalize("NFKC", answer if answer.strip() else content)


def _explains(text: str) -> bool:
    """Return True if a text names both numbers of the sum, in words of a language."""
    words = WORD.findall(text)
    return {"17", "25"} <= set(re.findall(r"\d+", text)) and (len(words) <= FEW or reads_as_language(words))


def _babbles(text: str) -> bool:
    """Return True if a few words have no small word of a language among them and make no sentence."""
    words = WORD.findall(text)
    return len(words) >= FEWEST and not SENTENCE_END.search(text) and not reads_as_language(words, few=FEWEST - 1)
