"""The wheels are enough: their commands work in an environment without the checkout, with every file of data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rackwright import __version__
from rackwright.profiles import catalog
from tests.warm import ROOT

ENGINES = ROOT / "packages" / "engines" / "rackwright_engines"
OURS = re.compile(r"_?rackwright|_editable_impl_rackwright")
IMPORTED = "rackwright, rackwright_bench, rackwright_engines, rackwright_lab"
VLLM = ("-m", "rackwright_engines", "check", "--engine", "vllm", "--version", "0.33.0", "-")


def run(*words: str | Path, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RACKWRIGHT"))}
    return subprocess.run(
        [*map(str, words)], cwd=cwd, env=clean, input=text, capture_output=True, text=True, check=False
    )


PACKAGES = ("rackwright", "rackwright_bench", "rackwright_lab")


class Wheels(dict[str, Path]):
    """The wheel of each package by its import name."""

    def files(self, name: str) -> set[str]:
        """Return the files in one wheel, without its metadata."""
        listed = zipfile.ZipFile(self[name]).namelist()
        return {path for path in listed if not path.partition("/")[0].endswith(".dist-info")}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Build the wheels of the product, the bench and the lab."""
    out = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", out)
    sources = (ROOT, ROOT / "packages" / "bench", ROOT / "packages" / "lab")
    done = run(sys.executable, "-m", "pip", "wheel", *options, *sources, cwd=out)
    assert done.returncode == 0, done.stderr
    return Wheels({name: next(out.glob(f"{name}-*.whl")) for name in PACKAGES})


def test_the_products_wheel_has_all_data_of_the_engines_and_nothing_of_lab_and_bench(wheels: Wheels) -> None:
    files = wheels.files("rackwright")
    data = {f"rackwright_engines/{path.relative_to(ENGINES)}" for path in ENGINES.rglob("*.yaml")}
    assert len(data) > 80
    assert data - files == set()
    assert {f"rackwright/data/{name}.yaml" for name in ("api_key", "preflight_figures", "rights")} - files == set()
    assert {path.partition("/")[0] for path in files} == {"rackwright", "rackwright_engines"}
    assert [path for path in files if "lab" in Path(path).stem.split("_") or path.endswith((".txt", ".in"))] == []


def test_each_site_file_is_in_one_wheel(wheels: Wheels) -> None:
    site, lab = (
        {path.removeprefix(f"{name}/site/") for path in wheels.files(name) if path.startswith(f"{name}/site/")}
        for name in ("rackwright", "rackwright_lab")
    )
    folders = ("inventory", "tasks", "templates", "group_vars")
    tracked = run("git", "-C", ROOT, "ls-files", "config.py", "deploy.py", *folders, cwd=ROOT).stdout.split()
    assert site | lab == set(tracked)
    assert site & lab == set()
    assert "inventory/lab.py" in lab


def test_lab_and_bench_bring_their_data_and_locks(wheels: Wheels) -> None:
    for name, source in (("rackwright_bench", "bench"), ("rackwright_lab", "lab")):
        shown = run("git", "-C", ROOT / "packages" / source, "ls-files", name, cwd=ROOT)
        assert set(shown.stdout.split()) - wheels.files(name) == set()


def project(folder: Path) -> dict[str, Any]:
    """Return the project table of a package."""
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def test_all_packages_have_one_version() -> None:
    extras = project(ROOT)["optional-dependencies"]
    for name in ("bench", "lab"):
        package = project(ROOT / "packages" / name)
        assert package["version"] == __version__
        assert package["dependencies"] == [f"rackwright=={__version__}"]
        assert extras[name] == [f"rackwright-{name}=={__version__}"]


def environment(folder: Path, *wheels: Path) -> Path:
    """Make an environment with some wheels alone, which takes other packages from this one; returns its Python."""
    python = installed(folder, "--offline", "--no-deps", *wheels)
    site = next((folder / "venv" / "lib").glob("python*/site-packages"))
    # A folder named so is searched, and its own .pth files, which lead to the checkout, are not read.
    others = [path for path in Path(sysconfig.get_path("purelib")).iterdir() if not OURS.match(path.name)]
    packages = folder / "others"
    packages.mkdir()
    for path in others:
        (packages / path.name).symlink_to(path)
    (site / "others.pth").write_text(f"{packages}\n")
    return python


@pytest.fixture(scope="module")
def alone(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the product's wheel alone."""
    return environment(tmp_path_factory.mktemp("alone"), wheels["rackwright"])


@pytest.fixture(scope="module")
def complete(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the three wheels."""
    return environment(tmp_path_factory.mktemp("complete"), *wheels.values())


def installed(folder: Path, *words: str | Path) -> Path:
    """Make an environment and install wheels into it; returns its Python."""
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    done = run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return python


def test_the_engines_are_judged_where_there_is_no_checkout(complete: Path, tmp_path: Path) -> None:
    refused = run(complete, *VLLM, cwd=tmp_path, text="max-num-seqz: 8")
    assert (refused.returncode, refused.stderr) == (1, "")
    assert "RW0301" in refused.stdout
    shown = run(complete, "-c", f"import {IMPORTED}; print(*(one.__file__ for one in ({IMPORTED},)))", cwd=tmp_path)
    folder = complete.parents[1]
    assert [Path(name).is_relative_to(folder) for name in shown.stdout.split()] == [True] * 4, shown


def test_without_their_packages_bench_and_lab_are_refused_with_the_package_to_install(
    alone: Path, tmp_path: Path
) -> None:
    for verb in ("bench", "lab"):
        done = run(alone.with_name("rackwright"), verb, "--help", cwd=tmp_path)
        assert done.returncode == 1
        assert "RW1029" in done.stderr
        assert f"in a checkout of {__version__}: pip install ./packages/{verb}" in done.stderr
    assert run(alone, "-c", "import rackwright_lab", cwd=tmp_path).returncode == 1


def test_a_site_of_the_product_alone_is_checked_and_has_no_lab(alone: Path, complete: Path, tmp_path: Path) -> None:
    for python, lab in ((alone, False), (complete, True)):
        command, site = python.with_name("rackwright"), tmp_path / str(lab)
        for words in (("--help",), ("init", str(site), "--profile", "b200")):
            done = run(command, *words, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, ""), words
        assert sorted(path.name for path in (site / "inventory").iterdir()) == ["b200.py"]
        done = run(command, "check", "inventory/b200.py", cwd=site)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        done = run(command, "init", site, "--lab", cwd=tmp_path)
        assert ((done.returncode, done.stderr) == (0, "")) == lab == (site / "inventory/lab.py").exists(), done.stderr
        assert ("RW1029" in done.stderr) != lab
        done = run(command, "init", "--update", site, cwd=tmp_path)
        assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, ""), done.stdout
    for verb in ("bench", "lab"):
        assert run(complete.with_name("rackwright"), verb, "--help", cwd=tmp_path).returncode == 0


def test_the_products_wheel_has_the_profiles(alone: Path, tmp_path: Path) -> None:
    shown = run(alone.with_name("rackwright"), "profiles", "show", "h200_vllm_eagle3", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "nvidia/gpt-oss-120b-Eagle3-v3" in shown.stdout
    listed = run(alone.with_name("rackwright"), "profiles", "list", "--json", cwd=tmp_path)
    assert [one["name"] for one in json.loads(listed.stdout)] == list(catalog.names())


def newer(wheel: Path, folder: Path, file: str, old: str, new: str) -> Path:
    """Return a copy of a wheel that ships another text in one file."""
    made = folder / wheel.name
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(made, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, content.replace(old.encode(), new.encode()) if name == file else content)
    return made


@pytest.mark.proof("a wheel is installed over another one; tests/unit/test_profiles.py has what an upgrade changes")
def test_an_upgrade_of_the_wheel_changes_no_file_of_a_host_before_pin(wheels: Wheels, tmp_path: Path) -> None:
    python, site = environment(tmp_path, wheels["rackwright"]), tmp_path / "site"

    def rackwright(*words: str) -> str:
        done = run(python.with_name("rackwright"), *words, cwd=site)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def rendered(name: str) -> dict[str, str]:
        rackwright("render", "inventory/rack.py", "--limit", "h1", "--out", str(tmp_path / name))
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        return {str(path.relative_to(tmp_path / name)): path.read_text() for path in files}

    inventory = "from rackwright.inventory import build\nglobals().update(build(__file__, {'rack': ['h1']}))\n"
    for name, text in (("inventory/rack.py", inventory), ("group_vars/rack.yml", "profile: b200\n"), ("deploy.py", "")):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    rackwright("pin", "inventory/rack.py", "--profiles")
    before = rendered("before")
    shipped, change = "rackwright/site/group_vars/b200.yml", ("max_batch_size: 10", "max_batch_size: 16")
    other = newer(wheels["rackwright"], tmp_path, shipped, *change)
    words = ("pip", "install", "--quiet", "--reinstall", "--offline", "--no-deps", "--python", python, other)
    done = run(sys.executable, "-m", "uv", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rendered("after") == before
    assert "engine.max_batch_size: 10 -> 16" in rackwright("check", "inventory/rack.py")
    rackwright("pin", "inventory/rack.py", "--profiles")
    assert rendered("pinned") != before


@pytest.mark.proof("80 packages of a registry and five cold starts; the wheels' files and their commands are tried")
def test_all_commands_work_from_the_wheel_and_a_registry_alone(wheels: Wheels, tmp_path: Path) -> None:
    python = installed(tmp_path, *wheels.values())
    command, site = python.with_name("rackwright"), tmp_path / "site"
    for words in (("--help",), ("init", str(site), "--profile", "b200"), ("explain", "max-num-seqs")):
        done = run(command, *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    done = run(command, "check", "inventory/b200.py", cwd=site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(python, *VLLM, cwd=tmp_path, text="max-num-seqz: 8").returncode == 1
