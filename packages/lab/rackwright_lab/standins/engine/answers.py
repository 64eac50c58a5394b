"""The stand-in's knowledge: short questions with one right answer; anything else gets a plausible sentence."""

from __future__ import annotations

import datetime
import re
import zlib
from collections.abc import Callable

from .arithmetic import solve

_CAPITALS = {
    "france": "Paris",
    "germany": "Berlin",
    "italy": "Rome",
    "spain": "Madrid",
    "portugal": "Lisbon",
    "japan": "Tokyo",
    "china": "Beijing",
    "india": "New Delhi",
    "canada": "Ottawa",
    "australia": "Canberra",
    "poland": "Warsaw",
    "austria": "Vienna",
    "norway": "Oslo",
    "sweden": "Stockholm",
    "finland": "Helsinki",
    "denmark": "Copenhagen",
    "greece": "Athens",
    "egypt": "Cairo",
    "kenya": "Nairobi",
    "brazil": "Brasília",
    "argentina": "Buenos Aires",
    "the united states": "Washington, D.C.",
    "the united kingdom": "London",
    "england": "London",
    "switzerland": "Bern",
    "the netherlands": "Amsterdam",
    "ireland": "Dublin",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_OPPOSITES = {"hot": "cold", "up": "down", "left": "right", "big": "small", "day": "night", "yes": "no"}
_SENTENCES = (
    "{about} is best understood by looking at what goes in, what comes out, and what has to stay true between the two.",
    "In short, {about} trades a little extra work at the start for a result that is easier to rely on later.",
    "{about} comes down to a few plain steps that are done in order and checked one after the other.",
)
_FILLERS = {
    "give",
    "tell",
    "explain",
    "describe",
    "write",
    "please",
    "summary",
    "sentence",
    "what",
    "about",
    "with",
    "two-sentence",
    "which",
    "that",
    "this",
    "from",
    "have",
    "short",
    "does",
    "your",
    "step",
    "benefits",
}


LAST = 4000
"""Characters of a question that the skills read, its end: a book before it takes them minutes."""


def _capital(text: str) -> str | None:
    found = re.search(r"capital(?: city)? of ([a-z ]+)", text, re.IGNORECASE)
    if not found:
        return None
    land = found[1].strip().lower()
    return next((city for name, city in _CAPITALS.items() if land.startswith(name)), None)


def _repeat(text: str) -> str | None:
    quoted = re.search(
        r"\b(?:repeat|say|reply|answer|respond|write|echo|output|print|return)\b[^\"'`“]*[\"'`“](.+?)[\"'`”](?=\W|$)",
        text,
        re.IGNORECASE,
    )
    if quoted:
        return quoted[1]
    plain = re.search(
        r"\b(?:repeat|say|reply with|answer with|respond with|echo)\b(?: back| exactly| only| just| after me| the"
        r"| single| one| word| following| text| and nothing else|:)*\s+([\w-]+)",
        text,
        re.IGNORECASE,
    )
    return plain[1] if plain else None


def _weekday(text: str) -> str | None:
    date = re.search(r"\b(\d{4}-\d{2}-\d{2})\b", text)
    if date and re.search(r"\bday\b|weekday", text, re.IGNORECASE):
        try:
            return _DAYS[datetime.date.fromisoformat(date[1]).weekday()]
        except ValueError:
            return None
    found = re.search(r"\b(after|before|follows|precedes)\s+(" + "|".join(_DAYS) + r")\b", text, re.IGNORECASE)
    if not found:
        return None
    step = 1 if found[1].lower() in ("after", "follows") else -1
    return _DAYS[(_DAYS.index(found[2].capitalize()) + step) % 7]


def _word_games(text: str) -> str | None:
    found = re.search(r"opposite of [\"']?(\w+)", text, re.IGNORECASE)
    if found:
        return _OPPOSITES.get(found[1].lower())
    found = re.search(r"how many letters .*?[\"'](\w+)[\"']", text, re.IGNORECASE)
    if found:
        return str(len(found[1]))
    found = re.search(r"(?:reverse|backwards?)\b.*?[\"'](\w+)[\"']", text, re.IGNORECASE)
    return found[1][::-1] if found else None


def _lists(text: str) -> str | None:
    found = re.search(r"count (?:from )?(\d+) (?:to|through) (\d+)", text, re.IGNORECASE)
    if found and int(found[2]) - int(found[1]) < 2000:
        return ", ".join(str(number) for number in range(int(found[1]), int(found[2]) + 1))
    found = re.search(r"(largest|greatest|biggest|smallest|lowest)[^\d]*((?:\d+[ ,and]*){2,})", text, re.IGNORECASE)
    if not found:
        return None
    numbers = [int(number) for number in re.findall(r"\d+", found[2])]
    return str(min(numbers) if found[1].lower() in ("smallest", "lowest") else max(numbers))


def _train(text: str) -> str | None:
    found = re.search(r"(\d+) km in (\d+) hours?\b.*slows down by (\d+)% for the next (\d+) hours?", text, re.DOTALL)
    if not found:
        return None
    far, hours, percent, more = (int(part) for part in found.groups())
    speed = far / hours
    slow = speed * (100 - percent) / 100
    return (
        f"The first speed is {far} / {hours} = {speed:g} km/h. After slowing down it is {slow:g} km/h, which gives "
        f"{slow:g} * {more} = {slow * more:g} km. The total distance is {far + slow * more:g} km."
    )


def _code(text: str) -> str | None:
    found = re.search(r"\bthe code is (\w+)", text, re.IGNORECASE)
    return found[1] if found and "code?" in text[-LAST:] else None


_SKILLS: tuple[Callable[[str], str | None], ...] = (
    _train,
    _capital,
    _weekday,
    _word_games,
    _lists,
    solve,
    _repeat,
)


def answer(question: str) -> str:
    """Return the answer to a question: the same one each time, right wherever the skills above reach."""
    if (code := _code(question)) is not None:
        return code
    question = question[-LAST:]
    for skill in _SKILLS:
        found = skill(question)
        if found is not None:
            return found
    words = [term for term in re.findall(r"[A-Za-z][\w-]{3,}", question) if term.lower() not in _FILLERS]
    about = " ".join(words[-3:]) or "that"
    sentence = _SENTENCES[zlib.crc32(question.encode()) % len(_SENTENCES)].format(about=about)
    return sentence[0].upper() + sentence[1:]
