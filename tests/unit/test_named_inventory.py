"""Commands that are printed name the inventory that this process was given."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from rackwright.cli import main
from rackwright.concerns.drained import Drained
from rackwright.messages import RackwrightError, name_inventory, printable
from rackwright.rollout.participants import Participants

MARK = Drained("GPU 3", "ann@laptop", "2026-11-20 10:00")


@pytest.fixture
def lab() -> Iterator[None]:
    name_inventory("inventory/my lab.py")
    yield
    name_inventory("")


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("next: rackwright undrain INVENTORY --limit h1", "next: rackwright undrain 'inventory/my lab.py' --limit h1"),
        (
            "next: rackwright status INVENTORY, then rackwright logs INVENTORY --limit h1",
            "next: rackwright status 'inventory/my lab.py', then rackwright logs 'inventory/my lab.py' --limit h1",
        ),
        ("next: pyinfra INVENTORY deploy.py --limit h1", "next: pyinfra 'inventory/my lab.py' deploy.py --limit h1"),
        ("ansible says INVENTORY is empty; rackwright: no", "ansible says INVENTORY is empty; rackwright: no"),
        ("rackwright plan; the INVENTORY of the site", "rackwright plan; the INVENTORY of the site"),
    ],
)
def test_a_command_names_the_inventory_and_other_text_keeps_its_words(text: str, wanted: str) -> None:
    assert printable(text) == wanted
    assert str(RackwrightError(text)) == wanted


def test_pyinfra_is_given_an_inventory_that_it_reads() -> None:
    name_inventory("hosts.ini")
    try:
        assert printable("next: pyinfra INVENTORY deploy.py") == (
            "next: RACKWRIGHT_ANSIBLE_INVENTORY=hosts.ini pyinfra inventory/ansible.py deploy.py"
        )
    finally:
        name_inventory("")


def test_without_an_inventory_the_word_stays_text() -> None:
    assert printable("next: rackwright status INVENTORY") == "next: rackwright status INVENTORY"


@pytest.mark.usefixtures("lab")
def test_a_drained_host_that_a_run_skips_names_a_command_that_works_with_several_inventories() -> None:
    reason = Participants(("h2",), drained={"h1": MARK}).reasons[0]
    assert printable(reason).endswith(" rackwright undrain 'inventory/my lab.py' --limit h1")


def test_a_command_names_its_inventory_in_its_refusals_and_only_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: argparse.Namespace) -> int:
        raise RackwrightError("h1 is drained; next: rackwright undrain INVENTORY --limit h1", code="RW1032")

    monkeypatch.setattr("rackwright.cli.status.run", refuse)
    assert main.main(["status", "inventory/lab.py"]) == 1
    assert capsys.readouterr().err.endswith(" rackwright undrain inventory/lab.py --limit h1\n")
    assert printable("rackwright status INVENTORY") == "rackwright status INVENTORY", "the next command has its own"
