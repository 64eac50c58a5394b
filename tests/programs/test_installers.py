"""The commands of docs/install.md put `rackwright`, `pyinfra` and `ansible-vault` on PATH, by pip, pipx and uv."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import canonicalize_name

from rackwright import __version__
from tests.warm import ROOT

PAGE = (ROOT / "docs" / "install.md").read_text()
BIN = Path(sysconfig.get_path("scripts"))
SUPPORTED = {str(tag) for tag in sys_tags()}
COMMANDS = ("rackwright", "pyinfra", "ansible-vault")


def needed(name: str, met: set[str]) -> Iterator[str]:
    """Yield a distribution of this environment and all that it needs."""
    name = canonicalize_name(name)
    if name in met:
        return
    met.add(name)
    yield name
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from needed(requirement.name, met)


def pack(found: Distribution, folder: Path) -> None:
    """Write a distribution of this environment as the wheel that it came from."""
    tags = re.findall(r"^Tag: (.+)$", str(found.read_text("WHEEL")), re.MULTILINE)
    tag = next(tag for tag in tags if tag in SUPPORTED)
    name = re.sub(r"[-_.]+", "_", found.metadata["Name"])
    scripts = f"{name}-{found.version}.data/scripts"
    rows = []
    with zipfile.ZipFile(folder / f"{name}-{found.version}-{tag}.whl", "w") as wheel:
        for path in found.files or ():
            source = Path(str(path.locate()))
            if path.suffix == ".pyc" or path.name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                continue
            inside = f"{scripts}/{path.name}" if ".." in path.parts else str(path)
            if ".." in path.parts and not _is_script_of(found, source):
                continue
            content = source.read_bytes()
            wheel.writestr(inside, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{inside},sha256={digest},{len(content)}")
        record = next(str(path) for path in found.files or () if path.name == "RECORD")
        wheel.writestr(record, "\n".join([*rows, f"{record},,", ""]))


def _is_script_of(found: Distribution, path: Path) -> bool:
    """Return whether the wheel brings a file outside of the packages; the others are made of its entry points."""
    return path.parent == BIN and path.name not in {point.name for point in found.entry_points}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the product's wheel, beside those of all that it needs, in a folder that takes the place of an index."""
    folder = tmp_path_factory.mktemp("index")
    words = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder)
    subprocess.run([sys.executable, *words, ROOT], check=True, capture_output=True)
    for name in (*needed("rackwright", set()), "pip"):
        if name != "rackwright":
            pack(distribution(name), folder)
    return folder


def typed(row: str, wheel: Path) -> list[str]:
    """Return the command of a row of the page, for a wheel."""
    command = re.search(rf"^\| {row}.* \| `(.+?)` \|$", PAGE, re.MULTILINE)
    assert command, row
    return [str(wheel) if argument == "." else argument for argument in shlex.split(command[1])]


def run(words: list[str], home: Path, index: Path) -> str:
    """Run a command for a user whose home is a folder, with nothing but the index to install from."""
    passed = {name: text for name, text in os.environ.items() if not name.startswith(("PIP", "UV", "PYTHON", "RACK"))}
    offline = {
        "HOME": str(home),
        "PATH": f"{home}/.local/bin:{BIN}:/usr/bin:/bin",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_NO_COMPILE": "1",
        "PIPX_DEFAULT_BACKEND": "uv",  # its other one begins with a newer pip from an index
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(index),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON": sys.executable,
    }
    done = subprocess.run(words, cwd=home, env=passed | offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("installer", ["pipx", "uv"])
def test_its_flags_put_three_commands_on_path(index: Path, tmp_path: Path, installer: str) -> None:
    wheel = next(index.glob("rackwright-*.whl"))
    run(typed(installer, wheel), tmp_path, index)
    shown = {path.name for path in (tmp_path / ".local" / "bin").iterdir()}
    assert set(COMMANDS) <= shown
    for command in COMMANDS:
        run([str(tmp_path / ".local/bin" / command), "--version"], tmp_path, index)
    assert __version__ in run(["rackwright", "--version"], tmp_path, index)


@pytest.mark.proof(
    "pip takes a minute of a busy machine; test_wheel.py installs the wheel by uv, and pipx and uv are here"
)
def test_pip_puts_them_beside_its_python(index: Path, tmp_path: Path) -> None:
    row = typed("pip, ", next(index.glob("rackwright-*.whl")))
    assert row[:4] == ["python3", "-m", "venv", "~/rackwright"]
    venv.create(tmp_path / "rackwright", with_pip=True)
    install = [argument.replace("~", str(tmp_path)) for argument in row[5 : row.index("&&", 5)]]
    run(install, tmp_path, index)
    for command in COMMANDS:
        run([str(tmp_path / "rackwright/bin" / command), "--version"], tmp_path, index)
