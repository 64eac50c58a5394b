"""The pause of the watch of engines, as status reads it."""

from __future__ import annotations

import pytest

from rackwright.concerns.watch.pause import parse_pause

TEXT = "4000\nwho=ops@deploy1\nsince=2026-11-27 03:00:00\nreason=new driver\n"


def test_a_pause_names_its_end_operator_and_reason() -> None:
    pause = parse_pause(TEXT, 400.0)
    assert pause is not None
    assert (pause.seconds, pause.who, pause.reason) == (3600, "ops@deploy1", "new driver")
    assert "60 min" in str(pause)
    assert "new driver" in str(pause)


@pytest.mark.parametrize("text", ["", "\n", "soon\nwho=ops", "4000", "-1\n", "³\n"])
def test_no_pause_without_a_second_in_the_future(text: str) -> None:
    assert parse_pause(text, 4000) is None


def test_what_a_host_says_cannot_act_on_a_terminal() -> None:
    pause = parse_pause(f"{'9' * 40}\nwho=\x1b[2J\nreason={'x' * 5000}\x07", 0)
    assert pause is not None
    assert "\x1b" not in str(pause)
    assert len(str(pause)) < 500
