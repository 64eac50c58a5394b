"""The hand-on program as processes on loopback: one copy from the hub, all hosts whole, resumed, capped, and closed."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests import texts
from tests.programs.hand_on_hosts import HUB_TOKEN, MIB, Fleet, Fleets, content, fleets, program

__all__ = ["fleets", "program"]


def run_all(fleet: Fleet, **spec: Any) -> None:
    for host in fleet.hosts:
        host.start(**spec)
    for host in fleet.hosts:
        assert host.wait() == 0, host.text()


def test_the_hub_is_asked_for_one_copy_and_every_host_has_all(fleets: Fleets) -> None:
    files = {"a/model.safetensors": content(9 * MIB + 77), "empty": b"", "b c/%41.json": b"{}", "one": content(MIB)}
    fleet = fleets(4, files)
    run_all(fleet)
    assert all(host.is_whole() for host in fleet.hosts)
    assert sum(fleet.hub.sent.values()) == sum(map(len, files.values()))
    assert {token for _, _, token in fleet.hub.asked} == {f"Bearer {HUB_TOKEN}"}
    for before, host in zip(fleet.hosts, fleet.hosts[1:], strict=False):
        assert f"10.0 MiB from {before.name}\n" in host.text()
    assert not fleet.listening()
    assert not any(HUB_TOKEN in host.text() for host in fleet.hosts)


def test_a_second_run_asks_the_hub_for_nothing(fleets: Fleets) -> None:
    fleet = fleets(2)
    run_all(fleet)
    fleet.hub.asked.clear()
    run_all(fleet)
    assert fleet.hub.asked == []


def test_a_killed_host_resumes_at_the_piece(fleets: Fleets) -> None:
    fleet = fleets(1, {"model": content(6 * MIB)}, rate=4 * MIB)
    (host,) = fleet.hosts
    host.start()
    host.wait_for_bytes(2 * MIB + 1)
    host.kill()
    host.start()
    assert host.wait() == 0, host.text()
    assert host.is_whole()
    resumed = int(fleet.hub.asked[-1][1][len("bytes=") : -1])
    assert resumed >= 2 * MIB
    assert resumed % MIB == 0


def test_a_rate_holds_for_what_is_received_and_for_what_is_served(fleets: Fleets) -> None:
    fleet = fleets(2, {"model": content(5 * MIB)})
    start = time.monotonic()
    fleet.hosts[0].start(serve_mib=2.0)
    fleet.hosts[1].start()
    assert fleet.hosts[1].wait() == 0, fleet.hosts[1].text()
    assert time.monotonic() - start > 2.0
    fleet = fleets(1, {"model": content(5 * MIB)})
    start = time.monotonic()
    fleet.hosts[0].start(rate_mib=2.0, listen=None)
    assert fleet.hosts[0].wait() == 0
    assert time.monotonic() - start > 2.0


def test_a_host_that_only_serves_writes_nothing_and_hands_no_wrong_file_on(fleets: Fleets) -> None:
    files = {"good": content(2 * MIB, 2), "spoilt": content(3 * MIB, 3)}
    fleet = fleets(2, files)
    first, second = fleet.hosts
    (first.folder / "good").write_bytes(files["good"])
    (first.folder / "spoilt").write_bytes(files["good"] + bytes(MIB))
    first.start(sources=[], origin=None, linger=3)
    second.start(origin={"url": fleet.hub.url, "authorised": False}, stall=6)
    assert second.wait() == 0, second.text()
    assert second.is_whole()
    assert first.wait() == 1
    assert texts.NOT_PUBLISHED.format(count=1, names="spoilt") in first.text()
    assert sorted(path.name for path in first.folder.iterdir()) == ["good", "spoilt"]
    assert (first.folder / "spoilt").read_bytes() == files["good"] + bytes(MIB)
    assert {(path, token) for path, _, token in fleet.hub.asked} == {("spoilt", "")}


def test_of_two_runs_on_one_folder_the_second_ends_and_the_first_fills_it(fleets: Fleets) -> None:
    fleet = fleets(1, {"model": content(8 * MIB)}, rate=MIB)
    (host,) = fleet.hosts
    host.start(linger=1)
    host.wait_for_bytes(MIB)
    first = host.process
    host.start(listen=None)
    assert host.wait() == 75
    assert "another program fills it" in host.text()
    assert first
    assert first.wait(30) == 0
    assert host.is_whole()


def test_bytes_may_be_encrypted_and_another_runs_certificate_is_refused(fleets: Fleets) -> None:
    fleet = fleets(3)
    certificate(fleet.secrets / "tls.pem")
    run_all(fleet, tls=True)
    assert all(host.is_whole() for host in fleet.hosts)
    assert "by TLS" in fleet.hosts[0].text()
    fleet = fleets(2)
    certificate(fleet.secrets / "tls.pem")
    fleet.hosts[0].start(tls=True, linger=2)
    fleet.hosts[0].wait_for("whole:")
    certificate(fleet.secrets / "tls.pem")
    fleet.hosts[1].start(tls=True, stall=2)
    assert fleet.hosts[1].wait() == 1
    assert fleet.hosts[1].have() == 0


def certificate(file: Path) -> None:
    """Write a certificate of a run, with its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def test_hosts_that_begin_later_are_waited_for(fleets: Fleets) -> None:
    fleet = fleets(2)
    first, second = fleet.hosts
    second.start(stall=4, start=30)
    time.sleep(6)
    first.start(stall=4, start=30, linger=10)
    assert second.wait() == 0, second.text()
    fleet = fleets(2)
    first, second = fleet.hosts
    first.start(stall=4, start=30, linger=10)
    first.wait_for("whole:")
    time.sleep(6)
    second.start(stall=4)
    assert second.wait() == 0, second.text()
    assert first.wait() == 0


def test_a_host_with_another_token_gets_nothing(fleets: Fleets) -> None:
    fleet = fleets(2)
    fleet.hosts[0].start(linger=20)
    fleet.hosts[0].wait_for("whole:")
    (fleet.secrets / "run_token").write_text("b-token-of-another-run-with-enough-characters")
    fleet.hosts[1].start(stall=2)
    assert fleet.hosts[1].wait() == 1
    assert "it answers 401" in fleet.hosts[1].text()
    assert fleet.hosts[1].have() == 0


def test_an_ended_program_leaves_no_listener(fleets: Fleets) -> None:
    fleet = fleets(1, {"model": content(4 * MIB)}, rate=MIB)
    (host,) = fleet.hosts
    for signal, status in ((15, 143), (9, -9)):
        host.start()
        host.wait_for_bytes(host.have() + MIB)
        assert fleet.listening() == [host.name]
        host.kill(signal)
        assert host.process
        assert host.process.returncode == status
        assert not fleet.listening()
        assert not host.wrong()


def test_it_ends_when_the_job_that_started_it_is_killed(fleets: Fleets) -> None:
    fleet = fleets(1, {"model": content(4 * MIB)}, rate=MIB)
    (host,) = fleet.hosts
    host.python = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", sys.executable]
    host.start()
    host.wait_for("listening")
    host.kill()
    deadline = time.monotonic() + 10
    while fleet.listening():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_arguments_that_lead_elsewhere_are_refused(program: Path) -> None:
    text = '{"files": [{"path": "../x", "size": 1, "sha256": "%s"}]}' % ("0" * 64)
    ended = subprocess.run([sys.executable, str(program), text], capture_output=True, text=True, check=False)
    assert ended.returncode == 78
    assert "a path that leads elsewhere" in ended.stdout
