"""A gateway's certificate is judged before a host is asked: its key, its time, its names and its chain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rackwright.concerns.gateway.concern import GATEWAY, SeenGateway, changes
from rackwright.concerns.preflight.gateway import GATEWAYS
from rackwright.loading.notes import notes
from rackwright.messages import SettingsError
from rackwright.plan.change import Refuse
from rackwright.settings.gateway_certificate import certificate_end, certificate_fault
from rackwright.settings.secret import Secret
from tests.unit.certificates import CHAIN, GOOD, ISSUER, NAME, ROOT, Issued, issued
from tests.unit.machines import case
from tests.unit.test_gateway_concern import gateway, wanted_of

NOW = datetime.now(UTC)


def fault(chain: str = CHAIN, key: Secret = GOOD.key, *names: str) -> str:
    """Return the code of what is wrong; empty for nothing."""
    found = certificate_fault(chain, key, names or (NAME,), NOW)
    return found.code if found else ""


@pytest.mark.parametrize("chain", [CHAIN, CHAIN + ROOT.pem, f"# a remark\n{CHAIN}"])
def test_a_certificate_with_its_chain_is_good(chain: str) -> None:
    assert fault(chain) == ""


def test_one_that_has_signed_itself_needs_no_chain() -> None:
    alone = issued("its own", None, (NAME,))
    assert fault(alone.pem, alone.key) == ""


@pytest.mark.parametrize(
    ("chain", "key", "code"),
    [
        ("", GOOD.key, "RW3612"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", GOOD.key, "RW3612"),
        (CHAIN + GOOD.key.unmask(), GOOD.key, "RW3612"),
        (CHAIN, Secret("no key"), "RW3622"),
        (CHAIN, GOOD.locked_key, "RW3622"),
        (CHAIN, ISSUER.key, "RW3632"),
        (ISSUER.pem + GOOD.pem, GOOD.key, "RW3632"),
        (GOOD.pem, GOOD.key, "RW3662"),
        (GOOD.pem + ROOT.pem, GOOD.key, "RW3662"),
        (CHAIN + GOOD.pem, GOOD.key, "RW3662"),
    ],
)
def test_what_is_wrong_has_its_code(chain: str, key: Secret, code: str) -> None:
    assert fault(chain, key) == code


@pytest.mark.parametrize("days", [{"days": -1}, {"days": 60, "since": 2}])
def test_one_that_has_ended_or_not_begun_is_refused(days: dict[str, float]) -> None:
    one = issued("a gateway", ISSUER, (NAME,), **days)
    assert fault(one.pem + ISSUER.pem, one.key) == "RW3642"


def test_an_issuer_that_has_ended_is_refused() -> None:
    issuer = issued("an issuer", ROOT, days=-1)
    one = issued("a gateway", issuer, (NAME,))
    assert fault(one.pem + issuer.pem, one.key) == "RW3642"


@pytest.mark.parametrize(
    ("has", "name", "good"),
    [
        ("*.example.org", NAME, True),
        ("*.example.org", "a.llm.example.org", False),
        ("*.example.org", "example.org", False),
        ("LLM.example.org", NAME, True),
        ("other.example.org", NAME, False),
    ],
)
def test_names(has: str, name: str, good: bool) -> None:
    one = issued(name, ISSUER, (has,))
    assert fault(one.pem + ISSUER.pem, one.key, name) == ("" if good else "RW3652")


def test_without_names_none_must_be_there() -> None:
    assert certificate_fault(CHAIN, GOOD.key, (), NOW) is None


def test_the_first_that_ends_counts() -> None:
    issuer = issued("an issuer", ROOT, days=3)
    one = issued("a gateway", issuer, (NAME,))
    end = certificate_end(one.pem + issuer.pem)
    assert end is not None
    assert end - NOW < timedelta(days=4)
    assert certificate_end("nothing") is None


def served(folder: Path, one: Issued, text: str = "") -> dict[str, object]:
    (folder / "llm.pem").write_text(text or one.pem + ISSUER.pem)
    return {"site": folder, "tls": True, "certificate": "llm.pem", "certificate_key": one.key, "names": [NAME]}


def test_it_is_refused_offline_and_by_the_plan_before_anything_is_changed(tmp_path: Path) -> None:
    settings = gateway(**served(tmp_path, issued("a gateway", ISSUER, (NAME,), days=-1)))  # type: ignore[arg-type]
    assert GATEWAY.files is not None
    with pytest.raises(SettingsError) as raised:
        GATEWAY.files(settings)
    assert raised.value.code == "RW3642"
    [change] = changes(wanted_of(settings), SeenGateway())
    assert [step.code for step in change.steps if isinstance(step, Refuse)] == ["RW3642"]


@pytest.mark.parametrize(("days", "warned"), [(10, True), (30, False)])
def test_one_that_ends_soon_is_a_warning(tmp_path: Path, days: float, warned: bool) -> None:
    settings = gateway(**served(tmp_path, issued("a gateway", ISSUER, (NAME,), days=days)))  # type: ignore[arg-type]
    assert any("gateway.certificate" in note for note in notes(settings)) == warned


def test_no_message_has_a_part_of_the_key(tmp_path: Path) -> None:
    settings = gateway(**served(tmp_path, GOOD, ISSUER.pem))  # type: ignore[arg-type]
    assert GATEWAY.files is not None
    with pytest.raises(SettingsError) as raised:
        GATEWAY.files(settings)
    assert not any(row in str(raised.value) for row in GOOD.key.unmask().split())


@pytest.mark.parametrize(("days", "warned"), [(10, True), (30, False)])
def test_preflight_warns_of_one_that_ends_soon(tmp_path: Path, days: float, warned: bool) -> None:
    settings = gateway(**served(tmp_path, issued("a gateway", ISSUER, (NAME,), days=days)))  # type: ignore[arg-type]
    rows = [row for check in GATEWAYS for row in check.rows(case(settings=settings))]
    assert [row.code for row in rows if row.warns and row.code != "RW3184"] == ["RW3100"] * warned
