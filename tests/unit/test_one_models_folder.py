"""Several models of one folder on a host, as a guide mounts `/models`: each at its own path, verified or as it is."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.concerns.endpoint.container import Resolved, endpoint_spec, served_name
from rackwright.concerns.models.concern import host_path, sources_of
from rackwright.engines.host import check_host
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.finding import Level

BASE, HEAD = "/models/original/gpt-oss-120b", "/models/original/gpt-oss-120b-Eagle3"
GUIDE: dict[str, Any] = {
    "image": "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc1",
    "models": {"folder": "/models/original"},
    "engine": {
        "speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model_dir": f"{HEAD}/"}
    },
}


def settings(key: str, **more: Any) -> HostSettings:
    """Return a host whose models are in one folder. key: `directory` or `path`."""
    base, head = (path if key == "path" else path.rpartition("/")[2] for path in (BASE, HEAD))
    models = {
        "model": {"repository": "openai/gpt-oss-120b", "mount": BASE, key: base},
        "draft": {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": HEAD, key: head},
    }
    return HostSettings.model_validate({**GUIDE, **models, **more})


@pytest.mark.parametrize("key", ["directory", "path"])
def test_model_and_draft_are_mounts_of_their_own_at_the_guide_s_paths(key: str) -> None:
    host = settings(key)
    endpoint = host.all_endpoints["llm"]
    assert endpoint.model is not None
    assert endpoint.draft is not None
    assert (host_path(host, endpoint.model, "c" * 40), host_path(host, endpoint.draft, "d" * 40)) == (BASE, HEAD)
    resolved = Resolved(f"sha256:{'0' * 64}", "c" * 40, BASE, "d" * 40, HEAD)
    spec = endpoint_spec("llm", endpoint, "/srv/encodings", resolved)
    words = [argument for group in spec.docker_run("x") for argument in group]
    assert {f"{BASE}:{BASE}:ro", f"{HEAD}:{HEAD}:ro"} <= set(words)
    assert [finding.text for finding in check_host(host) if finding.level is Level.REFUSE] == []


def test_only_what_is_to_be_verified_is_fetched() -> None:
    assert [source.directory for source in sources_of(settings("directory"))] == ["gpt-oss-120b", "gpt-oss-120b-Eagle3"]
    assert sources_of(settings("path")) == ()


def test_several_endpoints_serve_models_of_one_folder() -> None:
    other = {"repository": "openai/gpt-oss-20b", "mount": "/models/original/gpt-oss-20b", "directory": "gpt-oss-20b"}
    several = {"x": {"port": 8000, "gpus": [0]}, "y": {"port": 8001, "gpus": [1], "model": other, "draft": None}}
    host = settings("directory", endpoints=several)
    assert sorted(source.directory or "" for source in sources_of(host)) == [
        "gpt-oss-120b",
        "gpt-oss-120b-Eagle3",
        "gpt-oss-20b",
    ]
    assert {served_name(endpoint) for endpoint in host.all_endpoints.values()} == {"gpt-oss-120b", "gpt-oss-20b"}
