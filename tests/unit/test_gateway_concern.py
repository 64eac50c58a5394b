"""The gateway on a host: what is installed, written, checked and removed, what moved, and which steps count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.concerns.deploy_steps import Declared, counting, left_of, problems_of
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.gateway.answer import CERTIFICATE
from rackwright.concerns.gateway.concern import (
    GATEWAY,
    NEXT,
    GatewayFile,
    SeenGateway,
    WantedGateway,
    changes,
    parse,
    wanted,
)
from rackwright.concerns.gateway.files import CONFIG, ENGINE_KEYS, FOLDER, LEFT, UNIT_FILE, mode, sha256
from rackwright.concerns.gateway.package import expected_version
from rackwright.messages import RackwrightError
from rackwright.paths import GATEWAY_UNIT
from rackwright.plan.change import Change, Job, Owned, Refuse, Shell, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.settings.backend import Backend, GatewayHost, Server
from rackwright.settings.host_settings import SITE, HostSettings
from rackwright.settings.secret import Secret
from tests.unit.certificates import CHAIN, GOOD
from tests.unit.test_declared import ALL_STEPS

PLAIN = {"tls": False, "port": 80}
KEY = Secret("sk-of-a-gateway-test")
PACKAGES = {"haproxy": "2.6.12-1+deb12u4", "curl": "7.88"}
DEBIAN = OperatingSystem("debian", (), "bookworm", "12", "amd64")
DOCKER = SeenDocker(DEBIAN, "absent")


def server(address: str = "10.0.0.1") -> Server:
    return Server("a", "llm", 8000, 8010, KEY, lambda: address)


def gateway(*servers: Server, site: Path = Path("/"), **section: object) -> HostSettings:
    plain = HostSettings.model_validate({"gateway": {**PLAIN, **section}}, context={SITE: site})
    return plain.with_gateways((), (Backend("m", "vllm", servers or (server(),)),))


def wanted_of(settings: HostSettings, reading: SeenGateway | None = None) -> WantedGateway:
    return wanted(settings, HostReading({"docker": DOCKER, "gateway": reading or SeenGateway()}))


def settled(one: WantedGateway) -> SeenGateway:
    """Return a host as a deploy leaves it."""
    files = {path: GatewayFile(sha256(text), f"{mode(text)[1:]}:root") for path, text in one.files.items()}
    sums = {path: sha256(text) for path, text in one.files.items()}
    return SeenGateway(PACKAGES, "", files, sums, str(one.files[CONFIG]), runs=True)


def written(change: Change) -> list[str]:
    return [step.path for step in change.steps if isinstance(step, WriteFile)]


def test_a_bare_host_gets_the_packages_and_every_file() -> None:
    one = wanted_of(gateway())
    install, files = changes(one, SeenGateway())
    assert isinstance(install.steps[0], Job)
    assert install.owns == (Owned("package", "haproxy"), Owned("package", "curl"))
    staged = [f"{NEXT}{path.removeprefix(FOLDER)}" for path in one.files if path != UNIT_FILE]
    assert written(files) == [*staged, UNIT_FILE, LEFT]
    assert {one.name for one in files.owns} == {GATEWAY_UNIT, *one.files} - {UNIT_FILE}


def test_nothing_counts_before_haproxy_has_checked_it() -> None:
    _, change = changes(wanted_of(gateway()), SeenGateway())
    checks = [n for n, step in enumerate(change.steps) if isinstance(step, Shell) and step.code == "RW3614"]
    before, after = change.steps[: checks[0]], change.steps[checks[0] + 1 :]
    assert all(step.path.startswith(f"{NEXT}/") for step in before if isinstance(step, WriteFile))
    assert [step.path for step in after if isinstance(step, WriteFile)] == [UNIT_FILE, LEFT]
    assert [step.code for step in after if isinstance(step, Shell)][:1] == ["RW3624"]


def test_a_second_run_changes_nothing() -> None:
    one = wanted_of(gateway())
    assert changes(one, settled(one)) == []


def test_keys_and_certificate_are_readable_by_root_alone_and_in_no_diff(tmp_path: Path) -> None:
    (tmp_path / "llm.pem").write_text(CHAIN)
    one = wanted_of(gateway(site=tmp_path, tls=True, certificate="llm.pem", certificate_key=GOOD.key))
    secret = {path for path, text in one.files.items() if isinstance(text, Secret)}
    assert secret == {path for path in one.files if path.endswith(".map")} | {CERTIFICATE}
    assert one.files[CERTIFICATE] == Secret(CHAIN + GOOD.key.unmask())
    assert KEY.unmask() in one.files[ENGINE_KEYS].unmask()  # type: ignore[union-attr]
    _, change, _ = changes(one, SeenGateway())
    assert KEY.unmask() not in change.diff
    assert f"+{str(one.files[CONFIG]).splitlines()[0]}\n" in change.diff


def test_another_key_of_an_engine_or_certificate_is_another_revision() -> None:
    one, other = wanted_of(gateway()), wanted_of(gateway(replace(server(), api_key=Secret("fedcba9876543210"))))
    assert one.wanted.revision != other.wanted.revision
    assert one.wanted.revision in str(one.files[CONFIG])


def test_an_edit_by_hand_and_a_stopped_unit_have_moved_on_their_own() -> None:
    one = wanted_of(gateway())
    reading = settled(one)
    edited = replace(reading, files={**reading.files, CONFIG: GatewayFile(sha256("x"), "644:root")})
    for moved in (edited, replace(reading, runs=False)):
        [change] = changes(one, moved)
        assert change.by_itself
        assert not moved.as_left
    [change] = changes(wanted_of(gateway(port=8080)), reading)
    assert not change.by_itself


def test_a_list_that_a_revoked_key_has_made_wrong_is_written_again() -> None:
    wanted = wanted_of(gateway(server()))
    reading = replace(settled(wanted), last_sums={**settled(wanted).last_sums, f"{FOLDER}/keys.map": "0" * 64})
    assert [written(change) for change in changes(wanted, reading)] == [[LEFT]]


def test_a_file_that_is_readable_by_others_is_written_again() -> None:
    one = wanted_of(gateway())
    reading = settled(one)
    open_to_all = GatewayFile(reading.files[ENGINE_KEYS].sha256, "644:root")
    [change] = changes(one, replace(reading, files={**reading.files, ENGINE_KEYS: open_to_all}))
    assert written(change) == [f"{NEXT}/engine-keys.map", LEFT]


def test_a_file_of_an_earlier_deploy_goes() -> None:
    one = wanted_of(gateway())
    reading = settled(one)
    more = replace(
        reading,
        files={**reading.files, CERTIFICATE: GatewayFile("0" * 64, "600:root")},
        last_sums={**reading.last_sums, CERTIFICATE: "0" * 64},
    )
    [change] = changes(one, more)
    assert change.disowns == (Owned("file", CERTIFICATE),)


def test_a_host_without_an_address_is_refused_and_its_model_does_not_vanish() -> None:
    [change] = changes(wanted_of(gateway(server(), server(""))), SeenGateway())
    assert [step.code for step in change.steps if isinstance(step, Refuse)] == ["RW3634"]


KEYS_FILE = "keys:\n- {name: a, sha256: " + "a" * 64 + ", created: 2026-01-01}\n"


@pytest.mark.parametrize("text", [None, "", "# nothing\n", "keys: []\n", KEYS_FILE])
def test_a_site_without_its_file_of_keys_locks_no_client_out(tmp_path: Path, text: str | None) -> None:
    (file := tmp_path / "gateway_keys.yml").write_text(KEYS_FILE)
    settings = gateway(site=tmp_path)
    on_host = settled(wanted_of(settings))
    file.unlink()
    if text is not None:
        file.write_text(text)
    steps = [step for change in changes(wanted_of(settings, on_host), on_host) for step in change.steps]
    refused = [step.code for step in steps if isinstance(step, Refuse)]
    assert refused == ["RW3605"] * (text is None or "keys:" not in text)
    first = changes(wanted_of(settings), SeenGateway(PACKAGES))
    assert not any(isinstance(step, Refuse) for change in first for step in change.steps), "a first deploy needs none"


@pytest.mark.parametrize(("version", "refused"), [("2.2.9-2+deb11u6", True), ("2.4.30-0ubuntu0.22.04.4", False)])
def test_an_old_haproxy_is_refused_before_anything_is_written(version: str, refused: bool) -> None:
    reading = SeenGateway({**PACKAGES, "haproxy": version})
    steps = [step for change in changes(wanted_of(gateway(), reading), reading) for step in change.steps]
    assert [step.code for step in steps if isinstance(step, Refuse)] == ["RW2015"] * refused
    assert any(isinstance(step, WriteFile) for step in steps) != refused


def test_a_certificate_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(RackwrightError) as raised:
        wanted_of(gateway(site=tmp_path, tls=True, certificate="no.pem", certificate_key=Secret("PRIVATE")))
    assert raised.value.code == "RW3604"


def test_a_host_that_is_no_gateway_gets_nothing() -> None:
    assert changes(wanted_of(HostSettings.model_validate({})), SeenGateway()) == []


@pytest.mark.parametrize(
    ("packages", "candidate", "system", "version"),
    [
        (PACKAGES, "", DEBIAN, (2, 6)),
        ({"haproxy": "1:3.0.11-1"}, "", DEBIAN, (3, 0)),
        ({}, "2.4.30-0ubuntu0.22.04.1", DEBIAN, (2, 4)),
        ({}, "", replace(DEBIAN, version="13"), (3, 0)),
        ({}, "", replace(DEBIAN, id="other"), (2, 6)),
    ],
)
def test_the_version_is_the_one_that_runs_after_the_deploy(
    packages: dict[str, str], candidate: str, system: OperatingSystem, version: tuple[int, int]
) -> None:
    assert expected_version(packages, candidate, system) == version


def test_the_reading_is_parsed() -> None:
    output = "\n".join(
        [
            f"none {LEFT}", f"none {CONFIG}", "package haproxy 2.6.12-1", "candidate 2.6.12-1",
            f"gateway {'0' * 64} 600:root {ENGINE_KEYS}", f"runs {GATEWAY_UNIT}", "place eth0 10.0.0.11/24",
        ]
    )  # fmt: skip
    reading = parse(output)
    assert (reading.packages, reading.candidate, reading.runs) == ({"haproxy": "2.6.12-1"}, "2.6.12-1", True)
    assert reading.files == {ENGINE_KEYS: GatewayFile("0" * 64, "600:root")}
    assert [str(one.address) for one in reading.places] == ["10.0.0.11/24"]


def test_on_a_mere_gateway_few_steps_count_and_gateway_on_no_other_host() -> None:
    declared = Declared(ALL_STEPS)
    alone = counting(declared, gateway())
    assert alone.steps == ("preflight", "gateway", "converged")
    assert problems_of(alone, gateway()) == []
    model = {"model": {"repository": "m/a", "mount": "/models/m/a"}}
    served = HostSettings.model_validate({**model, "gateway": PLAIN})
    assert counting(declared, served).steps == tuple(
        step for step in ALL_STEPS if step not in ("gateway", "close_direct")
    )
    closing = GatewayHost("g", closes_direct=True)
    assert counting(declared, served.with_gateways((closing,), ())) is declared


def test_what_a_former_gateway_has_is_left_of_its_step() -> None:
    record = [Owned("package", "haproxy"), Owned("unit", GATEWAY_UNIT), Owned("file", CONFIG)]
    found = left_of(Declared(tuple(step for step in ALL_STEPS if step not in ("gateway", "close_direct"))), record)
    assert found == {"gateway": sorted(record)}
    assert left_of(Declared(("preflight", "gateway")), [Owned("package", "curl")]) == {}


def test_the_settings_that_it_reads_are_listed() -> None:
    assert GATEWAY.wanted(gateway(), HostReading({"docker": DOCKER})).files


def test_no_other_host_is_asked_about_a_gateway() -> None:
    assert "dpkg-query" in GATEWAY.read(gateway())
    assert GATEWAY.read(HostSettings.model_validate({})) == ":"
