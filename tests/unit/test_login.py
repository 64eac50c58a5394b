"""A login that runs nothing of what it is sent: the cause in one sentence, and none where it is another one."""

from __future__ import annotations

import pytest

from rackwright.plan.reading import HEAD
from rackwright.remote.sudo_errors import why_refused, why_unread
from tests.refused import refusal

READ = [f"{HEAD}3f1c", "3f1c begin units"]


@pytest.mark.parametrize(
    ("ok", "output", "errors", "code"),
    [
        (False, [], ["sudo: sorry, you must have a tty to run sudo"], "RW0733"),
        (False, [], ["sudo: a terminal is required to read the password", "sudo: a password is required"], "RW0708"),
        (False, [], ["ops is not in the sudoers file.  This incident will be reported."], "RW0708"),
        (True, READ, ["sh: 412: base64: Permission denied"], "RW0734"),
        (False, [], ["sh: 1: sh: Permission denied"], "RW0734"),
        (True, [], [], "RW0735"),
        (True, ["Welcome to fish"], [], "RW0735"),
        (False, [], ["Unmatched '."], "RW0769"),
        (False, [], ["Unmatched '''."], "RW0769"),
        (False, ["This account is currently not available."], [], "RW0769"),
        (False, [], ["rbash: line 1: /usr/bin/sudo: restricted: cannot specify `/' in command names"], "RW0769"),
        (False, [], [], "RW0769"),
    ],
)
def test_the_cause_is_named(ok: bool, output: list[str], errors: list[str], code: str) -> None:
    found = why_unread(ok, output, errors)
    assert found is not None
    assert found[0] == code
    assert "next" in found[1]


def test_status_names_the_shell_too() -> None:
    """What came back is split at line breaks, so that nothing is one empty line."""
    assert str(why_refused([""], ["This account is currently not available."])).startswith("RW0769: ")
    refusal(str(why_refused([""], [""])), "RW0769", "/bin/false")
    assert why_refused([""], ["line 3"]) is None
    assert why_refused(["sh: 3: x: not found"], []) is None


@pytest.mark.parametrize(
    ("ok", "output", "errors"),
    [(True, ["Welcome", *READ], []), (False, [], ["Killed"]), (True, READ, ["sh: 4: thing: Permission denied"])],
)
def test_what_is_none_of_these_is_not_called_so(ok: bool, output: list[str], errors: list[str]) -> None:
    assert why_unread(ok, output, errors) is None
