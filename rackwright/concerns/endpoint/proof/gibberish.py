"""Tell whether a text can be an answer at all: endless runs, broken characters, mixed scripts, no known words. Pure.

It imports nothing but Python's own library: hosts judge by this very file. It must never refuse a good answer, in
whatever language, so each sign is one that no model in order shows.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

MOST = 20_000
"""Characters that are read; no row asks for more."""
RUN = re.compile(r"(\S{1,4}?)\1{11,}")
WORDS_AGAIN = re.compile(r"(\S{1,12}\s)\1{11,}")
PHRASE_AGAIN = re.compile(r"([^\W\d_].{8,79}?)\1{4,}", re.DOTALL)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SENTENCE_END = re.compile(r"\w[)\"'”*]*[.!?…](?=\s|$|[\"'”)*])")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")
FEW = 12
"""Words of which no share says anything."""
COMMON_SHARE = 0.1
"""Ordinary prose has 0.3 to 0.5 of such words, a list of terms 0.2."""
LONGEST_SENTENCE = 60
EAST = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL"})
LATIN = frozenset({"LATIN", "FULLWIDTH", "MATHEMATICAL"})
SMALL_WORDS = """
a an the and or of to in on at is are it its this that with as by for from be has have was not we you i so if
can then there here one their they which when where your he she his her my our will would do let us into over
answer number sum add plus equals first now just need asked user only result so final
der die das und ist in zu den von mit ein eine es auf für nicht sich dem des im sie er wir als auch ich
le la les de du des et est un une en que qui pour dans sur pas il elle au aux ce se ne nous plus avec
el los las del y es una por con para se lo al su como más no si o
il lo gli i di e è che per non del della da si sono una come
os as do da dos das em não um uma que é ao na no com mais
het een van en dat te zijn op voor niet met er aan ook
och är att det som på av för den ett med og er på af til ikke en et ja on ei se
w z na i się nie to jest że do o a v s je se ve bir bu ile da için olan çok
yang dan di itu adalah dengan untuk dari ini pada là và của có không được các một trong những
"""
"""Words that nearly every sentence has: English, German, French, Spanish, Italian, Portuguese, Dutch, Nordic, Polish,
Czech, Turkish, Indonesian, Vietnamese."""
COMMON = frozenset(SMALL_WORDS.split())


def repeats_itself(text: str) -> bool:
    """Return True for an endless run of one short token, such as "!!!!!!!!!!!!" (TensorRT-LLM#8615)."""
    return RUN.search(text) is not None


def loops(text: str) -> bool:
    """Return True for an endless run of a token, a word or a phrase."""
    read = text[:MOST]
    return any(pattern.search(read) for pattern in (RUN, WORDS_AGAIN, PHRASE_AGAIN))


def nonsense(text: str) -> str:
    """Return why a text cannot be an answer in any language; empty when it can."""
    read = text[:MOST]
    # One may be a character that the token limit has cut in two.
    if read.count("\ufffd") > 1 or CONTROL.search(read):
        return "broken characters"
    words = WORD.findall(read)
    if _mixed(words):
        return "scripts mixed from word to word"
    return "" if reads_as_language(words) or _has_sentences(read, words) else "no words of a language"


def reads_as_language(words: list[str], few: int = FEW) -> bool:
    """Return True if words are few, in another script than Latin, or have the small words of a language among them."""
    latin = [token for token in words if _script(token) in LATIN]
    if len(latin) <= few or len(latin) < len(words) * 0.8:
        return True
    return sum(token.casefold() in COMMON for token in latin) >= len(latin) * COMMON_SHARE


def _has_sentences(text: str, words: list[str]) -> bool:
    return len(SENTENCE_END.findall(text)) * LONGEST_SENTENCE >= len(words)


def _mixed(words: list[str]) -> bool:
    """Return True if three scripts and more alternate, as in random tokens; a quoted foreign name does not."""
    scripts = [_script(token) for token in words]
    changes = sum(one != other for one, other in pairwise(scripts))
    return len(set(scripts)) > 2 and changes * 5 > len(scripts)


def _script(token: str) -> str:
    name = unicodedata.name(token[0], "").split(" ")[0]
    return "EAST" if name in EAST else "LATIN" if name in LATIN else name
