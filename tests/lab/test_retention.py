"""What stays on a host over several releases, and what a deep look finds, on one lived-in host."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Run, Site

pytestmark = pytest.mark.lab

MODELS = "ls -d /srv/models/*Eagle3*"


@pytest.fixture
def lived(worker_lab: Lab) -> Host:
    """Return the host as the file before left it; the second release that is proven here removes the older ones."""
    return worker_lab.host("lived2")


def deploy(site: Site, host: Host, draft: str, **data: Any) -> Run:
    source = {"repository": draft, "mount": "/config/models/eagle"}
    words = [argument for key, value in data.items() for argument in ("--data", f"{key}={json.dumps(value)}")]
    run = site.deploy("-y", "--data", f"draft={json.dumps(source)}", *words, limit=[host.name])
    assert run.status == 0, run.output
    return run


def test_two_releases_stay_and_older_ones_go_with_their_models(site: Site, lived: Host) -> None:
    # A file before may have left it without a record: Rackwright would complete it, and leave it to its owner.
    lived.run("rm -rf /srv/models/nvidia--gpt-oss-120b-Eagle3--*")
    deploy(site, lived, "nvidia/gpt-oss-120b-Eagle3")
    deploy(site, lived, "nvidia/gpt-oss-120b-Eagle3-short-context")
    assert len(lived.run(MODELS).stdout.split()) == 2, "rolling back needs no download"
    third = deploy(site, lived, "nvidia/gpt-oss-120b-Eagle3-throughput")
    removes = texts.pattern(texts.REMOVES_MODEL, path="/srv/models/nvidia--gpt-oss-120b-Eagle3--.*")
    assert re.search(removes, third.output), third.output
    assert len(lived.run(MODELS).stdout.split()) == 2
    assert len(lived.run("ls /var/lib/rackwright/endpoints/llm/releases").stdout.split()) == 2
    assert lived.run("test -d /srv/models/gpt-oss-120b", check=False).returncode == 0, "a foreign model stays"
    assert deploy(site, lived, "nvidia/gpt-oss-120b-Eagle3-throughput").changed == []


def test_a_deep_look_finds_what_size_and_time_hide(site: Site, lived: Host) -> None:
    draft = "nvidia/gpt-oss-120b-Eagle3-throughput"
    lived.run(
        "f=$(ls /srv/models/openai--gpt-oss-120b--*/model-00001*.safetensors) && touch -r $f /tmp/then && "
        "printf x | dd of=$f bs=1 seek=4096 conv=notrunc status=none && touch -r /tmp/then $f"
    )
    assert deploy(site, lived, draft).changed == []
    deep = deploy(site, lived, draft, models={"verify_deep": True})
    assert "damaged: model-00001" in deep.output
    assert "put openai/gpt-oss-120b" in deep.output
    again = deploy(site, lived, draft, models={"verify_deep": True})
    assert "damaged" not in again.output


def test_a_key_is_tried_only_when_asked(site: Site, lived: Host) -> None:
    draft = "nvidia/gpt-oss-120b-Eagle3-throughput"
    assert "try the key" not in deploy(site, lived, draft).output
    assert "try the key at nvcr.io" in deploy(site, lived, draft, registry={"check_key": True}).output
    site.lab.registry.answer(401)
    try:
        source = json.dumps({"repository": draft, "mount": "/config/models/eagle"})
        words = ("-y", "--data", f"draft={source}", "--data", "registry.check_key=true")
        refused = site.deploy(*words, limit=[lived.name])
    finally:
        site.lab.registry.heal()
    assert refused.status != 0
    assert texts.KEY_REFUSED.format(registry="nvcr.io") in refused.output
