"""A chat answer is the number and little more: nonsense behind it is refused, and no plausible good answer is."""

from __future__ import annotations

import json
import random
import string

import pytest

from rackwright.concerns.endpoint.proof.chat import chat
from rackwright.concerns.endpoint.proof.full import no_loop
from rackwright.concerns.endpoint.proof.gibberish import loops, nonsense
from rackwright.concerns.endpoint.proof.proof_row import Answer, Verdict, judge_safely

BASE = "http://127.0.0.1:8000"
CHANCE = random.Random(17)


def verdict_on(content: str, **message: str) -> Verdict:
    body = json.dumps({"choices": [{"message": {"content": content, **message}}]})
    return judge_safely(chat(BASE, "m"), Answer(200, body, 1.0))


def sea(content: str, **message: str) -> Verdict:
    body = json.dumps({"choices": [{"message": {"content": content, **message}}]})
    return judge_safely(no_loop(BASE, "m"), Answer(200, body, 1.0))


def made_up(words: int) -> str:
    return " ".join("".join(CHANCE.choices(string.ascii_lowercase, k=CHANCE.randint(2, 9))) for _ in range(words))


THOUGHTS = (
    "Okay, so I need to add 17 and 25. Let me see. 7 plus 5 is 12, so I write 2 and carry 1. Then 1 plus 2 plus 1 is "
    "4. Wait, let me check that again. 20 and 17 make 37, and 5 more make 42. Yes, that is right."
)
EXPLANATION = (
    "42\n\nTo find the sum of 17 and 25, you can add the ones digits first (7 + 5 = 12), write down the 2 and carry "
    "over the 1. Then add the tens digits together with the carried one (1 + 2 + 1 = 4). Put both digits next to each "
    "other and you have the sum that was asked for. If you want to check it, take 25 away from the sum: what remains "
    "is 17. I hope this helps! Please let me know if you have any other questions, and I will be glad to help."
)
GOOD = [
    "42",
    "42.",
    "**42**",
    "\n42\n",
    "$42$",
    "\\boxed{42}",
    "$$17 + 25 = 42$$",
    '{"answer": 42}',
    "４２",
    "17+25=42",
    "The answer is 42.",
    "Answer: 42",
    "42 (forty-two)",
    "42<|im_end|>",
    "Sure! 17 + 25 equals **42**. 😊",
    "42. Let me explain: 17 + 25 is 10 + 20 + 7 + 5.",
    "42\n\nLet me know if you have any other questions!",
    "17 + 25 = 42. To check: 42 - 25 = 17.",
    "La réponse est 42.",
    "答案是42。",
    "17 + 25 = 42 です。他にご質問はありますか？",
    "Ответ: 42",
    "42\n\nVoinko auttaa sinua jossakin muussa asiassa tänään?",
    '{"answer": 42, "unit": null, "confidence": "high"}',
    "42 (forty-two), i.e. forty plus two",
    "42 ist die Summe von 17 und 25. Wenn du weitere Fragen hast, helfe ich dir gern weiter.",
    "Vastaus on 42. Laskun voi tehdä vaikkapa näin: 17 + 25 on sama kuin 20 + 22, ja siitä tulee suoraan summa.",
    "Wynik dodawania 17 i 25 to 42, ponieważ 7 i 5 daje 12, a potem dodajemy dziesiątki oraz przeniesienie.",
    EXPLANATION,
    f"<think>\n{THOUGHTS}\n</think>\n\n42",
    f"{THOUGHTS}\n</think>\n\n**42**",
    f"[THINK]{THOUGHTS}[/THINK]42",
    f"<think>\n{THOUGHTS} Hmm, the user wants the number only, so I should think about how it is to be written",
    f"Here is my thought process: {THOUGHTS}\n\nHere is my response: 42",
    f"analysis{THOUGHTS}assistantfinal42",
]


@pytest.mark.parametrize("content", GOOD)
def test_a_plausible_good_answer_passes(content: str) -> None:
    assert verdict_on(content).passed, verdict_on(content)


NONSENSE = [
    f"42 berom {made_up(60)}",
    f"42 berom {made_up(20)}",
    f"42. {made_up(50)}. {made_up(50)}.",
    f"{made_up(40)} 42",
    f"42 {made_up(25)} 42 {made_up(25)} 42",
    "42 climbed be six,ghter six 22 22 every boat about on the bay found its\ufffdThe sea is wide and\ufffd seven,",
    "42 climbed the stairs 23, foundoat six,\x19 sixThe sea is wide and The wind",
    "42 six The sea is wide and the keeper of the boat found a lamp on the bay and the wind in the night came to "
    "the stairs with a bell that is six of the ships and in a morning the birds wait for the rang to have one behind",
    "42 the привет sea 世界 of мир to 海洋 and дом in 天空 is вода",
    "42\nUser: What is the capital of France?\nAssistant: It is Paris.\nUser: Who wrote the play about the prince?\n"
    "Assistant: It was written by a poet who lived a long time ago in a small town by a river in the west of the land.",
    f"<think>\n{THOUGHTS}\n</think>\n\n42 berom {made_up(60)}",
    f"<think>\n{THOUGHTS}\n</think>\n\n43",
    "42 " + "no way out " * 30,
    "42 " + "the sea is wide " * 12,
    "42.5",
    "1.42",
    "42,000",
    "42 berom wexnap qizzle dorf lamtep grunz vokkel ampf sorbit nalve",
    "**42** berom wexnap qizzle dorf lamtep grunz",
]


@pytest.mark.parametrize("content", NONSENSE)
def test_a_number_among_nonsense_is_no_answer(content: str) -> None:
    assert not verdict_on(content).passed, verdict_on(content)


def test_the_text_of_the_row_says_why() -> None:
    assert verdict_on(NONSENSE[0]).text.endswith(": it makes no sense: no words of a language")
    assert verdict_on(NONSENSE[5]).text.endswith(": it makes no sense: broken characters")
    assert verdict_on(NONSENSE[7]).text.endswith(" more words follow the number")


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_thoughts_are_read_too(key: str) -> None:
    assert verdict_on("42", **{key: THOUGHTS}).passed
    assert verdict_on("42", **{key: "We need just the number: 42."}).passed
    assert not verdict_on("42", **{key: made_up(40)}).passed


SEAS = [
    "The sea is wide and grey. Waves come in one behind the other. Birds wait above the surf. The wind carries salt.",
    "1. **Vast**: it stretches to the horizon.\n2. **Deep**: it hides whole mountains.\n3. **Salty**.\n4. **Blue**.",
    "Das Meer ist weit und tief. Wellen rollen an den Strand. Möwen kreisen über dem Wasser. Der Wind ist salzig.",
    "Meri on laaja ja syvä. Aallot lyövät rantaan kerta toisensa jälkeen. Lokit kaartelevat vedenpinnan yllä. Tuuli "
    "tuoksuu suolalta. Illalla laivat sytyttävät valonsa kaukana ulapalla.",
    "A tenger végtelen és mély. A hullámok szüntelenül mossák a partot. Sirályok köröznek a víz felett. Sós szél fúj.",
    "大海辽阔而深邃，蓝色的海面一望无际。海浪一波接一波地拍打着海岸。海鸥在天空中自由飞翔。",
    "海は広くて深いです。波が次々と浜辺に打ち寄せます。カモメが空を飛んでいます。",
    "البحر واسع وعميق. تتكسر الأمواج على الشاطئ. تحلق النوارس في السماء.",
    "Море широкое и глубокое. Волны бьются о берег. Чайки кружат над водой.",
    "In Greek it is θάλασσα and in Japanese 海. It is wide, it is deep, and it is full of life. Waves never rest.",
    "The sea is endless, its waves rolling in a restless rhythm that carries the salt of a thousand shores and the 🌊",
    "Silent waves,\nsalt wind,\ngulls above,\nships below the moon,\nnight comes.\nThe sea breathes in and out again.",
]


@pytest.mark.parametrize("text", SEAS)
def test_a_description_of_the_sea_passes_in_any_language(text: str) -> None:
    assert sea(text).passed, sea(text)
    assert sea("", reasoning=text).passed


@pytest.mark.parametrize(
    "text",
    [
        made_up(120),
        f"The sea {made_up(120)}",
        "The sea is\ufffd wide\ufffd and",
        " ".join(CHANCE.choice(["sea", "море", "海洋", "dalga", "θάλασσα", "wave"]) for _ in range(80)),
        "The sea is wide and deep and " + "the waves come in again and " * 6,
    ],
)
def test_nonsense_of_unique_words_is_refused(text: str) -> None:
    assert not sea(text).passed, sea(text)


@pytest.mark.parametrize(
    "text", ["|---|---|---|---|---|---|\n", "Row, row, row your boat", "ha ha ha", "1, 2, 3, 4, 5, 6, 7, 8", "=" * 11]
)
def test_a_table_or_a_song_is_no_loop(text: str) -> None:
    assert not loops(text)
    assert not nonsense(text)
