"""Retention: only ours goes, and only what no release on the host needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rackwright.concerns.image import LocalImage
from rackwright.concerns.models import SeenModel
from rackwright.concerns.retention import KeptRelease, SeenRetention, parse, spare_image, spare_model
from rackwright.plan.change import Owned

MODEL = SeenModel("/srv/models/a--b--111", "a/b", frozenset(), "1" * 40, frozenset(), frozenset(), 0, 1, ())
IMAGE = LocalImage("nvcr.io/nvidia/x", "1", "sha256:" + "a" * 64)
NEEDS = KeptRelease("h1", "nvcr.io/nvidia/x@sha256:" + "a" * 64, frozenset({"/srv/models/a--b--111"}))
OTHER = KeptRelease("h2", "nvcr.io/nvidia/x@sha256:" + "b" * 64, frozenset({"/srv/models/a--b--222"}))


@pytest.mark.parametrize("record", ["/srv/models/a--b--*", "/srv/models/a--b--111"])
def test_our_model_goes_when_no_release_mounts_it(record: str) -> None:
    owned = {Owned("model", record)}
    assert spare_model(MODEL, [OTHER], owned)
    assert not spare_model(MODEL, [OTHER, NEEDS], owned)


def test_a_model_on_a_share_stays_since_other_hosts_may_serve_from_it() -> None:
    assert not spare_model(replace(MODEL, shared=True), [OTHER], {Owned("model", MODEL.path)})


def test_a_model_that_is_not_ours_stays() -> None:
    assert not spare_model(MODEL, [OTHER], {Owned("model", "/srv/models/c--d--*"), Owned("file", MODEL.path)})


@pytest.mark.parametrize("record", ["nvcr.io/nvidia/x:1", "nvcr.io/nvidia/x@sha256:" + "a" * 64])
def test_our_image_goes_when_no_release_runs_it(record: str) -> None:
    owned = {Owned("image", record)}
    assert spare_image(IMAGE, [OTHER], owned)
    assert not spare_image(IMAGE, [NEEDS, OTHER], owned)


def test_an_image_of_docker_hub_is_named_as_docker_lists_it() -> None:
    image = replace(IMAGE, repository="vllm/vllm-openai", tag="v1")
    owned = {Owned("image", "docker.io/vllm/vllm-openai:v1")}
    assert spare_image(image, [OTHER], owned)
    assert not spare_image(image, [replace(OTHER, image=f"docker.io/vllm/vllm-openai@{image.digest}")], owned)


def test_an_image_that_is_not_ours_stays() -> None:
    assert not spare_image(IMAGE, [OTHER], {Owned("image", "nvcr.io/nvidia/y:1")})


def test_an_image_that_somebody_made_a_container_from_stays_until_that_is_gone() -> None:
    owned = {Owned("image", "nvcr.io/nvidia/x:1")}
    assert not spare_image(IMAGE, [OTHER], owned, {"nvcr.io/nvidia/x:1"})
    assert not spare_image(IMAGE, [OTHER], owned, {f"nvcr.io/nvidia/x@{IMAGE.digest}"})
    assert spare_image(IMAGE, [OTHER], owned, {"nvcr.io/nvidia/x:2", "0123456789ab"})


def test_images_in_use_are_read_beside_the_specs() -> None:
    assert parse("used nvcr.io/nvidia/x:1\nused 0123456789ab\n") == SeenRetention(
        (), frozenset({"nvcr.io/nvidia/x:1", "0123456789ab"})
    )
