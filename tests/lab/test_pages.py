"""README and the tutorial as a newcomer types them: each command is read from its page, and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

from rackwright_lab.lab import Lab
from rackwright_lab.machine.paths import STATE_ROOT
from tests.lab import tutorial
from tests.lab.conftest import BIN, ROOT, own_lab
from tests.lab.products import in_proof
from tests.lab.typist import Typist, environment
from tests.pages import CHANGES, ELSEWHERE, INSTALLS, Act, Edited, Typed, acts, status_of
from tests.programs.test_installers import needed, pack

pytestmark = pytest.mark.lab

FIRST = "A first deploy: five commands"

# -- README


@contextmanager
def newcomer(folder: Path, *programs: Path) -> Iterator[Typist]:
    """Yield a newcomer beside a bare host, who may log in there, and keeps secrets in `pass`."""
    with own_lab("r", hosts=1, bare=1) as lab:
        home = folder / "home"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        (home / ".ssh/config").write_text(f"Host *\n  IdentityFile {lab.paths.user_key}\n")
        env = environment(home, password_store(folder, lab), *programs)
        yield Typist(folder, env, {"10.0.0.7": lab.hosts[0].address}, lab)


def password_store(folder: Path, lab: Lab) -> Path:
    """Make the program `pass` with the lab's two secrets; returns its folder."""
    program = folder / "bin" / "pass"
    program.parent.mkdir()
    secrets = lab.paths.secrets
    names = f"infra/ngc) cat {secrets}/registry-key ;; infra/hf) cat {secrets}/hub-token ;;"
    program.write_text(f'#!/bin/sh\n[ "$1" = show ] && case $2 in {names} *) exit 1 ;; esac\n')
    program.chmod(0o755)
    return program.parent


def of_the_lab(lab: Lab) -> str:
    """Return what the site needs beside README's lines: nvcr.io and the hub are the lab's servers."""
    values = {
        "paths": {"private_ca": str(lab.paths.pki / "ca.crt")},
        "control_proxy": {"http": lab.proxy.url},
        "mirrors": {f"{name}_keys": list(keys) for name, keys in lab.apt_keys().items()},
        "models": {"hub_token": {"command": ["pass", "show", "infra/hf"]}},
        "rollout": {"bake": 2},
    }
    return yaml.safe_dump(values)


def as_its_list_has_it(page: list[Act]) -> list[Act]:
    """Edit after the second command, as README's list does; its commands are one block above the list."""
    edits = [act for act in page if isinstance(act, Edited)]
    others = [act for act in page if not isinstance(act, Edited)]
    return [*others[:2], *edits, *others[2:]]


def walk_readme(typist: Typist, section: str = "", installs: bool = False) -> None:
    """Type all of README, or one section; each command ends as it promises."""
    for act in as_its_list_has_it([act for act in acts("README.md") if section in ("", act.section)]):
        command = act.command if isinstance(act, Typed) else ""
        if command in ELSEWHERE or (command.startswith(INSTALLS) and not installs):
            continue
        if command in CHANGES:
            path, text = CHANGES[command]
            append(typist.folder / path, text)
        typist.does(act, status_of(act, typist.shown))
        if isinstance(act, Edited):
            append(typist.folder / act.file, of_the_lab(typist.lab))


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_readmes_first_deploy_is_typed_beside_a_bare_host(tmp_path: Path) -> None:
    """All of README is typed below, with what it installs, in `make proof`."""
    with newcomer(tmp_path, BIN) as typist:
        walk_readme(typist, FIRST)
        assert len(typist.shown[FIRST]) == 4, "all of its commands but the first, which installs"


# -- the tutorial


def walk_tutorial(folder: Path, programs: Path, installs: bool) -> None:
    """Type all of the tutorial in a lab of this process; each section shows what the page quotes."""
    lab = Lab.open("tut")
    lab.down()
    host = f"{lab.paths.id}-bare1"
    home = folder / "home"
    home.mkdir()
    env = environment(home, programs, RACKWRIGHT_LAB_ID=lab.paths.id)
    typist = Typist(folder, env, {"demo": lab.paths.id}, lab)
    try:
        for act in acts("docs/tutorial.md"):
            if installs or not (isinstance(act, Typed) and act.command.startswith(INSTALLS)):
                typist.does(act, status_of(act, typist.shown))
    finally:
        lab.down()
    differing = {
        section: rows
        for section, shown in typist.shown.items()
        if (rows := tutorial.missing(int(section.partition(".")[0]), "\n".join(shown), host))
    }
    assert differing == {}


@in_proof("its quotes are asked by test_deploy.py and others, README's first deploy is typed above")
def test_the_tutorial_is_typed_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    walk_tutorial(tmp_path, BIN, installs=False)


# -- from a fresh checkout, with its own installation


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the checkout, beside an environment without Rackwright and what pip would have from an index."""
    folder, index = tmp_path / "checkout", tmp_path / "index"
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    index.mkdir()
    met: set[str] = set()
    for name in (*needed("rackwright", met), *needed("hatchling", met)):
        if name != "rackwright":
            pack(distribution(name), index)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "python"], check=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_NO_COMPILE", "1")
    return folder


@in_proof("pip takes minutes of a busy machine; README's first deploy is typed above, with this checkout's commands")
@pytest.mark.parametrize("page", ["README", "tutorial"])
def test_a_page_is_typed_with_what_it_installs(checkout: Path, page: str) -> None:
    programs = checkout.parent / "python" / "bin"
    if page == "tutorial":
        walk_tutorial(checkout, programs, installs=True)
        return
    with newcomer(checkout, programs) as typist:
        walk_readme(typist, installs=True)


# -- make


@in_proof("a lab, a deploy and a question, which other tests type one by one")
def test_the_demo_comes_up_answers_and_leaves_nothing(tmp_path: Path) -> None:
    lab = Lab.open("tdemo")
    env = environment(tmp_path, BIN, MAKEFLAGS=f"LAB={lab.paths.id}", RACKWRIGHT_RUNS=str(tmp_path / "runs"))
    typist = Typist(ROOT, env, {}, lab)
    try:
        status, shown = typist.types("make demo")
        assert (status, "Paris" in shown) == (0, True), shown
        assert lab.is_up
    finally:
        status, shown = typist.types("make demo-down")
    assert status == 0, shown
    assert not (STATE_ROOT / lab.paths.id).exists()
