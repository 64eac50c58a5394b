"""The wheel alone is enough: its commands work in an environment without the checkout, with every file of data."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.warm import ROOT

ENGINES = ROOT / "packages" / "engines" / "rackwright_engines"
VLLM = ("-m", "rackwright_engines", "check", "--engine", "vllm", "--version", "0.33.0", "-")


def run(*words: str | Path, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RACKWRIGHT"))}
    return subprocess.run(
        [*map(str, words)], cwd=cwd, env=clean, input=text, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    words = (
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        out,
        ROOT,
    )
    done = run(sys.executable, *words, cwd=out)
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("rackwright-*.whl")
    return found


def test_it_has_each_package_and_all_data_of_the_engines(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {f"rackwright_engines/{path.relative_to(ENGINES)}" for path in ENGINES.rglob("*.yaml")}
    assert len(data) > 80
    assert data - names == set()
    assert {f"rackwright/data/{name}.yaml" for name in ("api_key", "preflight", "rights")} - names == set()
    tops = {name.partition("/")[0] for name in names if not name.endswith("/METADATA")}
    assert {name for name in tops if not name.endswith(".dist-info")} == {
        "rackwright", "rackwright_engines", "rackwright_lab"
    }  # fmt: skip


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the wheel alone, which takes other packages from this one; returns its Python."""
    folder = tmp_path_factory.mktemp("unpacked")
    python = installed(wheel, folder, "--offline", "--no-deps")
    site = next((folder / "venv" / "lib").glob("python*/site-packages"))
    # A folder named so is searched, and its own .pth files, which lead to the checkout, are not read.
    (site / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def installed(wheel: Path, folder: Path, *more: str) -> Path:
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    done = run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *more, wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return python


def test_the_engines_are_judged_where_there_is_no_checkout(unpacked: Path, tmp_path: Path) -> None:
    refused = run(unpacked, *VLLM, cwd=tmp_path, text="max-num-seqz: 8")
    assert (refused.returncode, refused.stderr) == (1, "")
    assert "RW0301" in refused.stdout
    where = "import rackwright, rackwright_engines, rackwright_lab as lab; "
    files = "print(rackwright.__file__, rackwright_engines.__file__, lab.__file__)"
    shown = run(unpacked, "-c", where + files, cwd=tmp_path)
    folder = unpacked.parents[1]
    assert [Path(name).is_relative_to(folder) for name in shown.stdout.split()] == [True] * 3, shown


@pytest.mark.proof(
    "80 packages of a registry and five cold starts; the wheel's files and the engines' command are tried"
)
def test_all_commands_work_from_the_wheel_and_a_registry_alone(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path)
    command, site = python.with_name("rackwright"), tmp_path / "site"
    for words in (("--help",), ("init", str(site)), ("explain", "max-num-seqs")):
        done = run(command, *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    done = run(command, "check", "inventory/b200.py", cwd=site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(python, *VLLM, cwd=tmp_path, text="max-num-seqz: 8").returncode == 1
