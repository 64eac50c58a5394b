"""An image of one engine with the settings of another is refused in one line, before each option is."""

from __future__ import annotations

import pytest

from rackwright.engines.host import check_endpoint
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Level

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/models/gpt-oss"}
VLLM = {"tensor-parallel-size": 8, "max-model-len": "8k"}


def found(image: str, kind: str | None = None, **more: object) -> list[tuple[str, Level]]:
    stated = {"engine_kind": kind} if kind else {}
    endpoint = EndpointSettings.model_validate({"image": image, "model": MODEL, **stated, **more})
    return [(one.code, one.level) for one in check_endpoint("llm", endpoint, Hardware())]


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("vllm/vllm-openai:v0.33.0", None),
        ("nvcr.io/nvidia/vllm:25.10-py3", "sglang"),
        ("lmsysorg/sglang:v0.5.23", None),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.1", "vllm"),
        ("registry.site.example:5000/mirror/vllm-openai:v0.33.0", None),
    ],
)
def test_an_image_of_another_engine_is_all_that_is_said(image: str, kind: str | None) -> None:
    assert found(image, kind, engine=VLLM) == [("RW0326", Level.REFUSE)]


def test_it_is_only_a_warning_where_that_is_accepted() -> None:
    problems = found("vllm/vllm-openai:v0.33.0", engine={}, accept_known_bad=True)
    assert ("RW0326", Level.WARN) in problems


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("vllm/vllm-openai:v0.33.0", "vllm"),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.1", None),
        ("site.example/inference:7", "sglang"),
        ("site.example/vllm-and-sglang:7", None),
        ("vllm.example:5000/inference:7", None),
        ("sglang.example/nvidia/tensorrt-llm/release:1.2.1", None),
    ],
)
def test_a_name_that_fits_or_says_nothing_passes(image: str, kind: str | None) -> None:
    assert "RW0326" not in [code for code, _ in found(image, kind)]
