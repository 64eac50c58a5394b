"""The wanted release is rendered once for all hosts that ask for the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run.inventories import load_inventory
from rackwright.concerns.endpoint.release.concern import RELEASE
from rackwright.concerns.endpoint.release.files import Release, build_release
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.image import IMAGE
from rackwright.concerns.image.concern import SeenImages
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.concern import SeenModels
from rackwright.plan.concern import HostReading
from tests.unit.machines import gpus

MODULE = "rackwright.concerns.endpoint.release.concern"
HOSTS = 50
SETTINGS = f"""\
model: {{repository: openai/gpt-oss-120b, mount: /config/models/m, revision: {"c" * 40}}}
image_digest: sha256:{"a" * 64}
allow_from: private
"""


@pytest.fixture
def renderings(monkeypatch: pytest.MonkeyPatch) -> list[Release]:
    """Every release that is rendered during a test; none was before."""
    made: list[Release] = []

    def counted(*words: Any) -> Release:
        made.append(build_release(*words))
        return made[-1]

    monkeypatch.setattr(f"{MODULE}.build_release", counted)
    monkeypatch.setattr(f"{MODULE}._rendered", {})
    return made


def wanted(site: Path, **values: str) -> list[str]:
    """Return the release of each of fifty hosts of one group; values: host_vars of some of them."""
    for folder in ("inventory", "group_vars", "host_vars"):
        (site / folder).mkdir()
    names = [f"h{number}" for number in range(1, HOSTS + 1)]
    (site / "inventory/x.py").write_text(
        f"from rackwright.inventory import build\nglobals().update(build(__file__, {{'one': {names}}}))\n"
    )
    (site / "group_vars/one.yml").write_text(SETTINGS)
    for name, text in values.items():
        (site / f"host_vars/{name}.yml").write_text(text)
    readings = {IMAGE.name: SeenImages(True, (), {}), MODELS.name: SeenModels((), frozenset()), GPUS.name: gpus()}
    found = [RELEASE.wanted(host.settings, HostReading(readings)) for host in load_inventory(site / "inventory/x.py")]
    return [release.hash for one in found for release in one.releases.values() if isinstance(release, Release)]


def test_fifty_hosts_of_one_group_need_one_rendering(tmp_path: Path, renderings: list[Release]) -> None:
    assert wanted(tmp_path) == [renderings[0].hash] * HOSTS
    assert len(renderings) == 1


def test_two_distinct_settings_need_two(tmp_path: Path, renderings: list[Release]) -> None:
    hashes = wanted(tmp_path, h7="stop_timeout: 61\n", h31="stop_timeout: 61\n", h40="docker: {users: [ann]}\n")
    assert len(hashes) == HOSTS
    assert len(renderings) == len(set(hashes)) == 2
