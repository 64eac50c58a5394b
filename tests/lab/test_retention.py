"""What stays on a host over several releases, and what a deep look finds, on one lived-in host."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Run, Site
from tests.lab.products import in_proof
from tests.warm import BIN

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


FLIP = (
    "f=$(ls /srv/models/openai--gpt-oss-120b--*/model-00001*.safetensors) && touch -r $f /tmp/then && "
    "printf x | dd of=$f bs=1 seek=4096 conv=notrunc status=none && touch -r /tmp/then $f"
)


def flip(host: Host) -> None:
    """Change one byte of a model's file, and leave its size and time."""
    host.run(FLIP)


def test_a_deep_look_finds_what_size_and_time_hide(site: Site, lived: Host) -> None:
    draft = "nvidia/gpt-oss-120b-Eagle3-throughput"
    flip(lived)
    assert deploy(site, lived, draft).changed == []
    deep = deploy(site, lived, draft, models={"verify_deep": True})
    assert re.search("damaged: .*/model-00001", deep.output)
    assert "put openai/gpt-oss-120b" in deep.output
    again = deploy(site, lived, draft, models={"verify_deep": True})
    assert "damaged" not in again.output


def cache(site: Site, host: Host, *words: str) -> Run:
    """Run `rackwright cache` for the host, with the draft that it serves."""
    draft = {"repository": "nvidia/gpt-oss-120b-Eagle3-throughput", "mount": "/config/models/eagle"}
    data = ("--limit", host.name, "--data", f"draft={json.dumps(draft)}")
    return site.rackwright("cache", words[0], "inventory/lab.py", *data, *words[1:])


def entries(site: Site, host: Host) -> dict[str, dict[str, Any]]:
    """Return what the host keeps, by path."""
    listing = cache(site, host, "ls", "--json")
    assert listing.status == 0, listing.output
    (found,) = json.loads(listing.output[listing.output.index("{") :])["hosts"]
    return {entry["path"]: entry for entry in found["entries"]}


def test_a_flipped_byte_is_found_by_verify_and_that_file_alone_is_fetched_by_repair(site: Site, lived: Host) -> None:
    flip(lived)
    listed = entries(site, lived)
    (base,) = (path for path in listed if "/openai--gpt-oss-120b--" in path)
    assert listed[base]["trouble"] == "", "size, time and inode do not tell"
    verify = cache(site, lived, "verify")
    assert (verify.status, "RW0854" in verify.output) == (2, True), verify.output
    assert "model-00001" in entries(site, lived)[base]["trouble"]
    faults.forget_requests(site.lab.paths.web)
    repair = cache(site, lived, "repair")
    assert repair.status == 0, repair.output
    fetched = [row["path"] for row in faults.requests(site.lab.paths.web) if row["method"] == "GET"]
    assert [path.rpartition("/")[2][:11] for path in fetched if "/api/" not in path] == ["model-00001"]
    before = int(time.time())
    again = cache(site, lived, "verify")
    assert again.status == 0, again.output
    entry = entries(site, lived)[base]
    assert (entry["trouble"], entry["whose"]) == ("", listed[base]["whose"])
    assert entry["verified"] >= before
    assert "llm" in entry["needed_by"]


@in_proof("tests/unit/test_caches.py decides what goes; the retention above removes a model by the same script")
def test_prune_removes_a_model_that_was_staged_and_given_up_and_nothing_that_is_needed(site: Site, lived: Host) -> None:
    source = json.dumps({"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"})
    words = ("--limit", lived.name, "-y", "--data", f"draft={source}")
    staged = site.command(BIN / "pyinfra", "inventory/lab.py", "rackwright/tasks/models.py", *words)
    assert staged.status == 0, staged.output
    (given_up,) = lived.run("ls -d /srv/models/nvidia--gpt-oss-120b-Eagle3--*").stdout.split()
    shown = cache(site, lived, "prune", "--dry")
    assert (shown.status, given_up in shown.output) == (0, True), shown.output
    assert lived.run(f"test -d {given_up}", check=False).returncode == 0
    pruned = cache(site, lived, "prune", "-y")
    assert pruned.status == 0, pruned.output
    assert lived.run(f"test -d {given_up}", check=False).returncode == 1
    assert len(lived.run(MODELS).stdout.split()) == 2, "kept releases need these"
    assert deploy(site, lived, "nvidia/gpt-oss-120b-Eagle3-throughput").changed == []


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
