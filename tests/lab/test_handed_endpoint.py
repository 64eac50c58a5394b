"""Bare hosts serve from an image and a model that they were handed on; one is rebuilt with all sources cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright_lab import faults
from rackwright_lab.lab import Lab
from rackwright_lab.servers.web import CDN_HOST
from tests.lab.conftest import BIN, Site, own_lab
from tests.lab.products import in_proof
from tests.lab.test_plan import inventory
from tests.lab.test_rebuild import fingerprint

pytestmark = pytest.mark.lab
HAND_ON = {"interface": "host0", "images": True, "keep_images": True, "tls": True}
PULLED = re.compile(r'(\S+) - - \[[^]]*\] "GET /v2/\S+/blobs/sha256:[0-9a-f]{64} [^"]*" 20[06] ')


@pytest.fixture
def bare_lab() -> Iterator[Lab]:
    with own_lab("i", hosts=2, bare=2) as lab:
        yield lab


@in_proof("three_hosts hands on, test_rebuild.py rebuilds; here both, until the endpoint serves")
def test_bare_hosts_serve_what_they_were_handed_and_one_is_rebuilt_with_registry_and_hub_cut_off(
    bare_lab: Lab, tmp_path: Path
) -> None:
    site, (first, second) = Site(bare_lab), bare_lab.hosts
    path = inventory(tmp_path, {"downloads": {"stall_timeout": 10, "hand_on": HAND_ON}})
    pinned = site.rackwright("pin", path)
    assert pinned.status == 0, pinned.output
    faults.forget_requests(bare_lab.paths.web)
    deploy = (BIN / "pyinfra", path, "deploy.py", "-y")
    run = site.command(*deploy)
    assert run.status == 0, run.output
    assert run.output.count("is answered with '42'") == 2
    log = bare_lab.registry.server.log.read_text(errors="replace")
    assert set(PULLED.findall(log)) == {first.address}, "the registry is asked by the first host alone"
    web = bare_lab.paths.web
    fetched = [row for row in faults.requests(web) if row["host"] == CDN_HOST or "/resolve/" in row["path"]]
    clients = {row["client"] for row in fetched}
    assert second.address not in clients

    second.reset()
    second.new_host_key()
    faults.forget_requests(web)
    for pattern in ("/api/models/*", "*/resolve/*"):
        faults.set_fault(web, "503", path=pattern)
    bare_lab.registry.answer(503)
    try:
        words = ("--limit", second.name, "-y", "--fingerprint", fingerprint(second))
        done = site.rackwright("rebuild", path, *words)
    finally:
        faults.clear(web)
        bare_lab.registry.heal()
    assert done.status == 0, done.output
    assert "port 7461, by TLS" in done.output
    assert "back in its place" in done.output
    status = json.loads(site.rackwright("status", path, "--json").output)["endpoints"]
    assert [(row["health"], row["wanted"]) for row in status] == [("serving", True)] * 2
    assert site.command(*deploy).changed == []
