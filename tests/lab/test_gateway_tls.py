"""The certificates of gateways on lab hosts: one that the site gives, and those of an authority by ACME."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.authority import Authority, authority
from tests.lab.behind import bridge
from tests.lab.conftest import BIN, ROOT, Run, Site, own_lab
from tests.lab.products import in_proof
from tests.programs.gateway_stubs import ALICE, engine
from tests.unit.certificates import ISSUER, NAME, Issued, issued
from tests.unit.certificates import ROOT as TEST_ROOT

pytestmark = pytest.mark.lab
WHY = "two bare gateways and an authority take two minutes; tests/programs holds the configuration, and units the rest"
INVENTORY = """
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

globals().update(build(__file__, {{"b200": [("away", {{"ssh_hostname": "{away}"}})], "gateway": hosts()}}))
"""
UNIT = "rackwright-certificate.service"
STATE = "/var/lib/rackwright/gateway/acme"
BODY = '{"model": "gpt-oss-120b", "stream": true, "messages": []}'


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    with own_lab("s", hosts=2, bare=2) as lab:
        yield lab


@dataclass
class Gateways:
    """A site of two gateways, and of a host behind them that a stub stands for."""

    site: Site
    folder: Path
    roots: Path
    """Roots by which clients check the gateways."""

    @property
    def hosts(self) -> list[Host]:
        return self.site.lab.hosts

    def settings(self, **values: Any) -> None:
        """Write the section `gateway`."""
        section = {"names": [NAME], "allow_from": ["10.79.0.0/16"], **values}
        (self.folder / "group_vars/gateway.yml").write_text(yaml.safe_dump({"gateway": section}))

    def certificate(self, one: Issued, key: Issued | None = None) -> None:
        """Give a certificate of the tests' own issuer."""
        (self.folder / "llm.pem").write_text(one.pem + ISSUER.pem)
        self.settings(certificate="llm.pem", certificate_key=(key or one).key.unmask())

    def deploy(self) -> Run:
        return self.site.command(
            BIN / "pyinfra", "inventory/lab.py", "deploy.py", "-y", "--limit", "gateway", cwd=self.folder
        )

    def curl(self, host: Host, *words: str) -> list[str]:
        """Return the words of a request by TLS that checks the certificate."""
        at = f"{NAME}:443:{host.address}"
        return [
            "curl",
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--cacert",
            str(self.roots),
            "--resolve",
            at,
            *words,
        ]

    def answers(self, host: Host) -> bool:
        """Return True if a gateway answers, and its certificate is good."""
        words = self.curl(host, "--max-time", "10", "--write-out", "%{http_code}", "--output", "/dev/null")
        run = subprocess.run([*words, f"https://{NAME}/healthz"], capture_output=True, text=True, check=False)
        return run.stdout == "200"

    def stream(self, host: Host) -> subprocess.Popen[str]:
        """Begin an answer that takes its time."""
        config = f'header = "Authorization: Bearer {ALICE}"\n'
        words = self.curl(host, "--no-buffer", "--data", BODY, "--config", "-")
        words.append(f"https://{NAME}/gpt-oss-120b/v1/chat/completions")
        stream = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert stream.stdin is not None
        assert stream.stdout is not None
        stream.stdin.write(config)
        stream.stdin.close()
        assert "data:" in stream.stdout.readline()
        return stream


def whole(stream: subprocess.Popen[str]) -> bool:
    """Return True if a stream came to its end."""
    assert stream.stdout is not None
    text = stream.stdout.read()
    return stream.wait(120) == 0 and "[DONE]" in text


def serial(host: Host) -> str:
    """Return the number of the certificate that a new connection gets."""
    words = f"openssl s_client -connect [::1]:443 -servername {NAME} </dev/null 2>/dev/null"
    return host.run(f"{words} | openssl x509 -noout -serial").stdout.strip()


def processes(host: Host) -> set[str]:
    """Return the numbers of HAProxy's processes: a reload makes another."""
    return set(host.run("pgrep -x haproxy").stdout.split())


@pytest.fixture
def gateways(site: Site, tmp_path: Path) -> Iterator[Gateways]:
    shutil.copy(ROOT / "deploy.py", tmp_path)
    shutil.copytree(ROOT / "tasks", tmp_path / "tasks")
    for name in ("inventory", "group_vars", "templates"):
        (tmp_path / name).mkdir()
    for name in ("all", "b200"):
        shutil.copy(ROOT / f"group_vars/{name}.yml", tmp_path / "group_vars")
    away = bridge(site.lab.hosts[0])
    (tmp_path / "inventory/lab.py").write_text(INVENTORY.format(away=away))
    key = {"name": "alice", "sha256": hashlib.sha256(ALICE.encode()).hexdigest(), "created": "2026-01-01T00:00:00Z"}
    (tmp_path / "gateway_keys.yml").write_text(yaml.safe_dump({"keys": [key]}))
    roots = tmp_path / "clients.pem"
    roots.write_text(TEST_ROOT.pem)
    with engine("away", at=away, port=8000, word_port=8010, tokens=100, tick=0.5):
        yield Gateways(site, tmp_path, roots)


@in_proof(WHY)
def test_a_certificate_of_the_site_is_renewed_by_a_deploy_and_a_wrong_one_is_refused(gateways: Gateways) -> None:
    gateways.certificate(issued("first", ISSUER, (NAME,)))
    first = gateways.deploy()
    assert first.status == 0, first.output
    host = gateways.hosts[0]
    assert [gateways.answers(one) for one in gateways.hosts] == [True, True]
    refused_before_tls_1_2(host)

    stream, before = gateways.stream(host), serial(host)
    good = issued("second", ISSUER, (NAME,))
    gateways.certificate(good)
    second = gateways.deploy()
    assert second.status == 0, second.output
    assert stream.poll() is None, "it was to outlive the deploy"
    after = serial(host)
    assert after != before
    assert gateways.answers(host)
    for code, wrong, key in (
        ("RW3632", issued("another", ISSUER, (NAME,)), good),
        ("RW3642", issued("old", ISSUER, (NAME,), days=-1), None),
        ("RW3652", issued("another name", ISSUER, ("other.example.org",)), None),
    ):
        gateways.certificate(wrong, key)
        refused = gateways.deploy()
        assert code in refused.output, refused.output
        assert refused.status != 0
    assert serial(host) == after
    assert whole(stream)


def refused_before_tls_1_2(host: Host) -> None:
    """Assert that old versions of TLS get nothing, and those from 1.2 on an answer."""
    for version, good in (("1", False), ("1_1", False), ("1_2", True), ("1_3", True)):
        words = f"openssl s_client -connect [::1]:443 -tls{version} -cipher ALL:@SECLEVEL=0 </dev/null 2>&1"
        found = re.search(r"Cipher is (\S+)", host.run(words, check=False).stdout)
        assert (found is not None and found[1] not in ("(NONE)", "0000")) == good, version


@pytest.fixture
def issuer(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    with authority(tmp_path_factory.mktemp("authority"), bridge(site.lab.hosts[0])) as made:
        made.start()
        made.name_is_at(*(one.address for one in site.lab.hosts))
        yield made


def renew(host: Host) -> int:
    """Order another certificate now; returns the status."""
    return host.run(f"touch {STATE}/renew-now && systemctl start {UNIT}", check=False).returncode


def ordered(gateways: Gateways, issuer: Authority) -> Run:
    """Deploy gateways that get their certificates from the authority."""
    shutil.copy(issuer.roots, gateways.folder / "roots.pem")
    acme = {"email": "ops@example.org", "directory": issuer.directory, "roots": "roots.pem"}
    gateways.settings(acme=acme)
    run = gateways.deploy()
    gateways.roots.write_bytes(issuer.issued_root.read_bytes())
    return run


@in_proof(WHY)
def test_certificates_by_acme_come_and_are_renewed_and_a_failure_changes_nothing(
    gateways: Gateways, issuer: Authority
) -> None:
    first = ordered(gateways, issuer)
    assert first.status == 0, first.output
    assert [gateways.answers(one) for one in gateways.hosts] == [True, True]
    assert gateways.deploy().changed == []
    host, other = gateways.hosts
    modes = host.run(f"stat -c %a {STATE} {STATE}/served.pem; find {STATE} -name '*.pem' -perm /077").stdout
    assert modes.split() == ["700", "600"]

    stream, before = gateways.stream(host), serial(host)
    issuer.name_is_at(other.address)  # as if the other one had the common address
    assert renew(host) == 0
    assert stream.poll() is None, "it was to outlive the renewal"
    assert serial(host) != before
    assert gateways.answers(host)
    assert whole(stream)

    before, running = serial(host), processes(host)
    issuer.stop()
    assert renew(host) != 0
    issuer.start(PEBBLE_WFE_NONCEREJECT="100")
    assert renew(host) != 0
    issuer.start()
    issuer.name_is_at(issuer.address)  # where nothing answers at port 80
    assert renew(host) != 0
    assert (serial(host), processes(host)) == (before, running), "a failure reloads nothing"
    assert " failed " in host.run(f"cat {STATE}/result").stdout
    issuer.name_is_at(host.address)
    assert renew(host) == 0, "an authority that has forgotten the account gets a new one"
    assert serial(host) != before


@in_proof(WHY)
def test_a_first_order_that_fails_leaves_a_gateway_that_answers_and_all_of_it_goes(
    gateways: Gateways, issuer: Authority
) -> None:
    host = gateways.hosts[0]
    host.run(f"rm -rf {STATE}")
    issuer.stop()
    failed = ordered(gateways, issuer)
    assert "RW3672" in failed.output
    assert failed.status != 0
    healthz = "curl --silent --insecure --output /dev/null --write-out %{http_code} https://[::1]/healthz"
    assert host.run(healthz).stdout == "200"
    moved = gateways.site.command(
        BIN / "rackwright", "drift", "inventory/lab.py", "--limit", "gateway", cwd=gateways.folder
    )
    assert issuer.directory in moved.output
    words = ("teardown", "inventory/lab.py", "--limit", "gateway", "-y")
    gone = gateways.site.command(BIN / "rackwright", *words, cwd=gateways.folder)
    assert gone.status == 0, gone.output
    remaining = "ls -d /etc/rackwright /var/lib/rackwright/gateway /etc/systemd/system/rackwright-[cg]* /usr/bin/uacme"
    assert host.run(f"{remaining} 2>/dev/null", check=False).stdout == ""
