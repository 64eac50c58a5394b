"""The certificate on a gateway's host: orders and renewals by ACME, and the timer that looks at it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.status import _script as status_command
from rackwright.concerns.gateway.answer import CERTIFICATE, ISSUED
from rackwright.concerns.gateway.concern import SeenGateway, WantedGateway, changes, parse
from rackwright.concerns.gateway.files import CONFIG
from rackwright.concerns.gateway.renewal import (
    HOOK,
    LOOK,
    PROXY,
    RENEWAL_LEFT,
    ROOTS,
    RenewalFiles,
    SeenCertificate,
    renewal_files,
)
from rackwright.inspect.status.reading import Asked
from rackwright.inspect.status.reading import parse as parse_status
from rackwright.inspect.status.rows import rows_of
from rackwright.loading.validate import validate
from rackwright.messages import SettingsError
from rackwright.paths import CERTIFICATE_TIMER, CERTIFICATE_UNIT, UNITS
from rackwright.plan.change import Change, Owned, Shell, WriteFile
from rackwright.settings.backend import Backend, GatewayHost
from rackwright.settings.host_settings import SITE, HostSettings
from rackwright.settings.secret import Secret
from tests.unit.certificates import CHAIN, GOOD, NAME
from tests.unit.test_gateway_concern import PACKAGES, server, settled, wanted_of

ACME = {"email": "ops@example.org", "directory": "https://acme.example.org/dir"}
DAY = 86400
FRESH = SeenCertificate("issued", 80 * DAY, 90 * DAY, (NAME,))


def gateway(site: Path = Path("/"), more: dict[str, Any] | None = None, **section: Any) -> HostSettings:
    values = {"gateway": {"names": [NAME], "acme": ACME, **section}, **(more or {})}
    plain = HostSettings.model_validate(values, context={SITE: site})
    hosts = [GatewayHost(f"g{n}", partial(str, at), is_self=n == 0) for n, at in enumerate(("10.0.0.1", "fd00::2"))]
    return plain.with_gateways(tuple(hosts), (Backend("m", "vllm", (server(),)),))


def deployed(one: WantedGateway, certificate: SeenCertificate | None = FRESH) -> SeenGateway:
    """Return a host as a deploy leaves it."""
    base = settled(one)
    renewal = settled(
        WantedGateway(one.settings, replace(one.wanted, files={**one.files, **one.renewal.files}), one.address)
    )
    files = {path: replace(row, mode="755:root") if path == HOOK else row for path, row in renewal.files.items()}
    packages = {**PACKAGES, "openssl": "3", "uacme": "1", "ca-certificates": "1"}
    sums = {path: renewal.last_sums[path] for path in one.renewal.files}
    return replace(base, packages=packages, files=files, timed=True, renewal_sums=sums, certificate=certificate)


def orders(found: list[Change]) -> list[Shell]:
    return [step for change in found for step in change.steps if isinstance(step, Shell) and step.code == "RW3672"]


def test_a_bare_gateway_runs_before_it_orders_a_certificate() -> None:
    one = wanted_of(gateway())
    install, files, timer, order = changes(one, SeenGateway())
    assert {one.name for one in install.owns} >= {"uacme", "openssl", "ca-certificates"}
    assert f"ssl crt {ISSUED}" in str(one.files[CONFIG])
    assert any(isinstance(step, Shell) and "served.pem" in step.script for step in files.steps)
    assert {Owned("unit", CERTIFICATE_UNIT), Owned("unit", CERTIFICATE_TIMER), Owned("file", HOOK)} <= {*timer.owns}
    assert [step.path for step in timer.steps if isinstance(step, WriteFile)] == [*one.renewal.files, RENEWAL_LEFT]
    assert orders([order]) == [order.steps[0]]


def test_a_second_run_changes_nothing() -> None:
    one = wanted_of(gateway())
    assert changes(one, deployed(one)) == []
    assert deployed(one).as_left


@pytest.mark.parametrize(
    ("certificate", "as_left"),
    [
        (None, False),
        (replace(FRESH, by="other"), True),
        (replace(FRESH, names=("other.example.org",)), True),
        (replace(FRESH, seconds=14 * DAY), False),
        (replace(FRESH, seconds=-1), False),
    ],
    ids=["none", "of before", "other names", "renewals fail", "expired"],
)
def test_an_order_that_is_due_is_made_by_the_next_deploy(certificate: SeenCertificate | None, as_left: bool) -> None:
    one = wanted_of(gateway())
    reading = deployed(one, certificate)
    assert len(orders(changes(one, reading))) == 1
    assert reading.as_left == as_left


def test_a_short_certificate_is_not_ordered_anew_in_its_first_days() -> None:
    assert not SeenCertificate("issued", 4 * DAY, 6 * DAY, (NAME,)).ends_soon
    assert SeenCertificate("issued", DAY // 2, 6 * DAY, (NAME,)).ends_soon


def test_another_authority_or_address_of_the_account_is_an_order() -> None:
    reading = deployed(wanted_of(gateway()))
    for other in ({"directory": "https://other.example.org/dir"}, {"email": "other@example.org"}):
        found = changes(wanted_of(gateway(acme={**ACME, **other})), reading)
        assert len(orders(found)) == 1


def test_a_stopped_timer_and_an_edited_hook_have_moved_on_their_own() -> None:
    one = wanted_of(gateway())
    reading = deployed(one)
    edited = replace(reading, files={**reading.files, HOOK: replace(reading.files[HOOK], sha256="0" * 64)})
    for moved in (replace(reading, timed=False), edited):
        assert not moved.as_left
        [change] = changes(one, moved)
        assert {one.name for one in change.owns} >= {CERTIFICATE_TIMER}


def test_a_certificate_of_the_site_is_looked_at_without_any_order(tmp_path: Path) -> None:
    (tmp_path / "llm.pem").write_text(CHAIN)
    given: dict[str, Any] = {"acme": None, "certificate": "llm.pem", "certificate_key": GOOD.key}
    one = wanted_of(gateway(tmp_path, **given))
    assert {*one.renewal.files} == {LOOK, f"{UNITS}/{CERTIFICATE_UNIT}", f"{UNITS}/{CERTIFICATE_TIMER}"}
    assert orders(changes(one, SeenGateway())) == []
    assert f"ssl crt {CERTIFICATE}" in str(one.files[CONFIG])
    by_acme = deployed(wanted_of(gateway()))
    _, timer = changes(one, by_acme)
    assert Owned("file", HOOK) in timer.disowns
    assert "bind [::]:80" not in str(one.files[CONFIG])


def test_without_tls_there_is_no_timer() -> None:
    assert renewal_files(gateway(acme=None, tls=False, port=80)) == RenewalFiles()


def test_the_other_gateway_is_asked_for_what_this_one_does_not_know() -> None:
    one = wanted_of(gateway())
    assert "others='[fd00::2]'" in str(one.renewal.files[HOOK])
    text = str(one.files[CONFIG])
    assert "server other1 [fd00::2]:80" in text
    assert "server other2" not in text


def test_a_proxy_s_password_is_readable_by_root_alone() -> None:
    files = renewal_files(gateway(more={"proxy": {"https": "http://u:hidden-word@proxy:3128"}})).files
    assert isinstance(files[PROXY], Secret)
    assert not any("hidden-word" in str(text) for path, text in files.items() if path != PROXY)


def test_roots_come_from_the_site(tmp_path: Path) -> None:
    settings = gateway(tmp_path, acme={**ACME, "roots": "roots.pem"})
    with pytest.raises(SettingsError) as raised:
        renewal_files(settings)
    assert raised.value.code == "RW3604"
    (tmp_path / "roots.pem").write_text("no certificate")
    with pytest.raises(SettingsError):
        renewal_files(settings)
    (tmp_path / "roots.pem").write_text(CHAIN)
    files = renewal_files(settings).files
    assert files[ROOTS] == CHAIN
    assert f"{ROOTS}:/etc/ssl/certs/ca-certificates.crt" in str(files[f"{UNITS}/{CERTIFICATE_UNIT}"])


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"certificate": "a.pem", "certificate_key": Secret("PRIVATE")}, "certificate"),
        ({"names": []}, "names"),
        ({"tls": False}, "tls"),
        ({"port": 80}, "port"),
    ],
)
def test_what_does_not_fit_to_acme_is_said_of_its_key(section: dict[str, Any], key: str) -> None:
    _, [problem] = validate("h", {"gateway": {"names": [NAME], "acme": ACME, **section}}, {})
    assert (problem.code, problem.path) == ("RW0122", ("gateway", key))


def test_the_reading_has_the_certificate() -> None:
    rows = [f"certificate issued 100 200 {NAME},", f"runs {CERTIFICATE_TIMER}"]
    reading = parse("\n".join(rows))
    assert reading.certificate == SeenCertificate("issued", 100, 200, (NAME,))
    assert reading.timed
    assert parse("certificate issued x y ,").certificate == SeenCertificate("issued", 0, 0)


@pytest.mark.parametrize(("days", "noted"), [(60, False), (13, True), (-1, True)])
def test_status_has_the_end_of_the_certificate_and_says_when_it_is_near(days: int, noted: bool) -> None:
    now = datetime(2026, 11, 27, tzinfo=UTC)
    end = int((now + timedelta(days=days)).timestamp())
    rows = ["uptime 100", "gateway active 200", f"certificate {end}", "end"]
    settings = gateway()
    [row] = rows_of("gw", Asked(settings), parse_status(rows), now)
    assert row.certificate_end == f"{now + timedelta(days=days):%F %T}Z"
    assert bool(row.note) == noted


def test_status_asks_each_gateway_for_its_certificate() -> None:
    for settings, path in ((gateway(), ISSUED), (gateway(acme=None, tls=False, port=80), "''")):
        for script in (status_command(settings), Asked(settings).script):
            assert f"certificate={path}\n" in script
