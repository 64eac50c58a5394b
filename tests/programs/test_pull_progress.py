"""How far a pull is in bytes, from what Docker says of the layers and of the image's manifest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside import host_text

MIB = 1 << 20


def functions() -> str:
    """Return the functions of the pull that count bytes."""
    text = host_text("pull_image.sh")
    return text[text.index("layer_sizes()") : text.index("# From a bundle")]


def manifest(architecture: str, *layers: tuple[str, int]) -> dict[str, Any]:
    """Return what `docker manifest inspect --verbose` prints of one architecture."""
    described = {"digest": f"sha256:{'f' * 64}", "size": 7, "platform": {"architecture": architecture, "os": "linux"}}
    listed = [{"mediaType": "layer", "size": size, "digest": f"sha256:{name:0<64}"} for name, size in layers]
    config = {"mediaType": "config", "size": 9, "digest": f"sha256:{'e' * 64}"}
    return {"Ref": "x", "Descriptor": described, "SchemaV2Manifest": {"config": config, "layers": listed}}


def run(folder: Path, script: str) -> str:
    head = f"set -u\nmachine=amd64\nwork={folder}\nwas=0\n{functions()}"
    return subprocess.run(["sh", "-c", head + script], check=True, capture_output=True, text=True).stdout


LAYERS = (("aa1", 100 * MIB), ("bb2", 300 * MIB), ("cc3", 624 * MIB))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return the folder of a pull that knows the sizes of its three layers."""
    both = [manifest("arm64", ("dd4", 5)), manifest("amd64", *LAYERS)]
    (tmp_path / "manifest").write_text(json.dumps(both, indent="\t"))
    run(tmp_path, 'layer_sizes <"$work/manifest" >"$work/sizes"')
    return tmp_path


def docker_prints(folder: Path, **states: str) -> None:
    (folder / "out").write_text("".join(f"{name:0<12}: {state}\n" for name, state in states.items()))


def test_sizes_are_those_of_this_machines_layers(work: Path) -> None:
    rows = [f"{name:0<12} {size}" for name, size in LAYERS]
    assert (work / "sizes").read_text().splitlines() == rows


def test_one_manifest_alone_and_another_order_of_keys_are_read(tmp_path: Path) -> None:
    one = manifest("amd64", ("aa1", 5))
    one["OCIManifest"] = {"layers": [dict(reversed(row.items())) for row in one.pop("SchemaV2Manifest")["layers"]]}
    (tmp_path / "manifest").write_text(json.dumps(one, indent=3))
    assert run(tmp_path, 'layer_sizes <"$work/manifest"') == "aa1000000000 5\n"


def test_bytes_of_a_graph_driver_and_of_containerds_store_are_each_counted_once(work: Path) -> None:
    docker_prints(work, aa1="Pull complete", bb2="Download complete", cc3="Pulling fs layer")
    # Until a layer is unpacked, Docker's own store has all of it beside what arrives.
    graph = run(work, f'how_much {(300 + 12) * MIB} 0 4; echo "$text"')
    contained = run(work, f'how_much 0 {12 * MIB} 4; echo "$text"')
    assert graph == contained == "412.0 MiB of 1.0 GiB (40%), 103.0 MiB/s\n"


def test_the_rate_is_that_of_the_time_since_the_last_line(work: Path) -> None:
    docker_prints(work, aa1="Already exists", bb2="Pulling fs layer", cc3="Pulling fs layer")
    text = run(work, f'how_much 0 0 4; how_much {40 * MIB} 0 4; echo "$text"; how_much {40 * MIB} 0 4; echo "$text"')
    assert text.splitlines() == ["140.0 MiB of 1.0 GiB (13%), 10.0 MiB/s", "140.0 MiB of 1.0 GiB (13%), 0.0 MiB/s"]


def test_without_sizes_no_bytes_are_told(tmp_path: Path) -> None:
    docker_prints(tmp_path, aa1="Pulling fs layer")
    (tmp_path / "sizes").touch()
    assert run(tmp_path, 'how_much 5 0 4; echo "[$text]"') == "[]\n"
    (tmp_path / "sizes").unlink()
    assert run(tmp_path, 'how_much 5 0 4; echo "[$text]"') == "[]\n"


def test_where_docker_reads_no_manifest_the_lock_files_sizes_count(tmp_path: Path) -> None:
    text = host_text("pull_image.sh")
    check = text[text.index("check_machine()") : text.index("wrong_machine()")]
    rows = "- aa1000000000 5\namd64 bb2000000000 6\narm64 cc3000000000 7"
    run(tmp_path, f"{check}sizes='{rows}'\npulled=x\ntimeout() {{ return 1; }}\ncheck_machine")
    assert (tmp_path / "sizes").read_text().splitlines() == ["aa1000000000 5", "bb2000000000 6"]
    (tmp_path / "theirs").write_text(json.dumps([manifest("amd64", *LAYERS)], indent="\t"))
    run(tmp_path, f"{check}sizes='{rows}'\npulled=x\ntimeout() {{ cat {tmp_path}/theirs; }}\ncheck_machine")
    assert len((tmp_path / "sizes").read_text().splitlines()) == len(LAYERS), "Docker's own count first"
