"""What tests ask of a refusal: its code and every field, and no other refusal's."""

from __future__ import annotations

import pytest

from rackwright.messages import RackwrightError
from tests.refused import codes, refusal, refused, row_of

OUTPUT = """\
    [h1] RW0705: another run: ops@a; next: wait
    [h2] RW0712: lost
    [h2]   next: the same command
    [h2] it serves again
    [h1] it is well
    [h2] much later
RW0101: two problems:
  RW0210: a.yml:1: prt: unknown key
done
"""


def test_each_field_must_be_in_the_same_refusal() -> None:
    assert refusal(OUTPUT, "RW0705", "[h1]", "ops@a").startswith("    [h1] RW0705")
    assert "same command" in refusal(OUTPUT, "RW0712", "h2")
    refusal(OUTPUT, "RW0712", "serves again")
    refusal(OUTPUT, "RW0210", "a.yml:1", "prt")
    assert codes(OUTPUT) == ["RW0705", "RW0712", "RW0101", "RW0210"]
    for code, field in (
        ("RW0705", "h2"),
        ("RW0712", "ops"),
        ("RW0712", "well"),
        ("RW0712", "later"),
        ("RW0799", "h1"),
        ("RW0210", "done"),
    ):
        with pytest.raises(AssertionError, match=code):
            refusal(OUTPUT, code, field)


def test_an_error_is_refused_by_its_code_and_fields() -> None:
    with refused("RW0705", "h1", 7) as caught:
        raise RackwrightError("h1: 7 of 8", code="RW0705")
    assert caught.value.args
    with pytest.raises(AssertionError, match="RW0712"), refused("RW0712", "h1"):
        raise RackwrightError("h1", code="RW0705")


def test_a_row_has_its_mark_name_and_figures() -> None:
    output = "  proved: llm: a chat answer: 42\n  refused: GPU count: 7\n"
    assert "42" in row_of(output, "proved", "a chat answer", "llm", 42)
    for mark, name, field in (("refused", "a chat answer", 42), ("refused", "GPU count", 8)):
        with pytest.raises(AssertionError, match=name):
            row_of(output, mark, name, field)
