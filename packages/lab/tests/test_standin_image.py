from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from rackwright_lab.servers import image
from rackwright_lab.standins import oci, rootfs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/tool").write_text("#!/bin/sh\n")
    (root / "usr/bin/tool").chmod(0o755)
    (root / "bin").symlink_to("usr/bin")
    return root


def test_a_layer_has_the_same_bytes_for_the_same_files(root: Path) -> None:
    names = rootfs.files_below(root)
    first = rootfs.layer(root, names)
    (root / "usr/bin/tool").touch()
    assert rootfs.layer(root, names) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert {entry.name: oct(entry.mode) for entry in tar if entry.isfile()} == {"usr/bin/tool": "0o755"}
        assert tar.getmember("bin").linkname == "usr/bin"


def test_a_layout_holds_tags_for_images_and_indexes(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "layout"
    layout = oci.Layout(folder)
    layer = layout.add_layer(rootfs.layer(root, rootfs.files_below(root)))
    amd, arm = (layout.add_image([layer], name, {"Env": ["A=1"]}) for name in ("amd64", "arm64"))
    layout.tag(amd, "one")
    layout.tag(layout.add_index([amd, arm]), "both")
    layout.close()
    assert oci.tags(folder)["one"] == amd["digest"]
    blobs = {file.name: file.read_bytes() for file in (folder / "blobs/sha256").iterdir()}
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in blobs.items())
    both = json.loads(blobs[oci.tags(folder)["both"].removeprefix("sha256:")])
    assert [one["platform"]["architecture"] for one in both["manifests"]] == ["amd64", "arm64"]
    manifest = json.loads(blobs[amd["digest"].removeprefix("sha256:")])
    config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    stored = blobs[manifest["layers"][0]["digest"].removeprefix("sha256:")]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(gzip.decompress(stored)).hexdigest()}"]


def test_another_list_of_versions_is_another_image() -> None:
    assert image.key(image.VERSIONS) != image.key(image.VERSIONS[:1])


def test_the_images_key_covers_all_engines() -> None:
    names = {str(source.relative_to(rootfs.STANDINS)) for source in rootfs.engine_sources()}
    assert {"engine/commands/serve.py", "common/flags.py", "vllm/main.py", "sglang/launch.py"} <= names


def test_images_go_to_the_registry_that_their_name_says() -> None:
    names = (f"{image.REPOSITORY}:1.2.0rc6", image.VLLM, image.SGLANG)
    assert [image.of_hub(name) for name in names] == [False, True, True]


def test_every_shim_hands_on_names_that_exist(tmp_path: Path) -> None:
    rootfs.put_package(tmp_path, "engine", "common", "vllm", "sglang")
    modules = [
        file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for shims in rootfs.SHIMS.values()
        for file in shims
    ]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    argv = [sys.executable, "-c", code, *modules]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_killed_runs_left_and_old_layouts_are_swept_away(tmp_path: Path) -> None:
    for name in ("layout-new", "layout-old", "layout-cut.partial", "tmpabc"):
        (tmp_path / name).mkdir()
    (tmp_path / "lock").touch()
    os.utime(tmp_path / "layout-old", (1000, 1000))
    image.sweep(tmp_path, since=2000)
    assert {entry.name for entry in tmp_path.iterdir()} == {"layout-new", "lock"}
