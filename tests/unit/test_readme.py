"""README: its commands are run, here or by the tests of RUN_BY, and its tables are of today."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from rackwright.cli import init
from rackwright.cli.main import main
from rackwright.init.machine import Machine
from rackwright.profiles import catalog

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
RUN_BY = {
    "pip install": "tests/programs/test_installers.py",
    "rackwright init": "tests/unit/test_readme.py",
    "rackwright check": "tests/unit/test_readme.py",
    "pyinfra": "tests/lab/test_deploy.py",
    "rackwright plan": "tests/lab/test_plan.py",
    "rackwright rollout": "tests/lab/three_hosts",
    "rackwright status": "tests/lab/test_plan.py",
    "rackwright rollback": "tests/lab/three_hosts",
    "rackwright resume": "tests/lab/three_hosts",
}
"""The tests that run each command of README but `make`."""
KNOWN = {
    "gpt-oss-120b": "gpt-oss-120b",
    "DeepSeek-R1": "DeepSeek-R1",
    "Llama 3.3 70B": "Llama-3.3-70B",
    "Qwen3-30B": "Qwen3-30B",
    "Qwen3-235B": "Qwen3-235B",
    "Qwen3.6-35B": "Qwen3.6-35B",
}
"""Names of README's table, and the part of a repository's name that they stand for."""


def blocks(language: str) -> list[str]:
    """Return the blocks of a language, without the indent that they have in a list."""
    return [
        re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        for indent, kind, text in BLOCK.findall(README)
        if kind == language
    ]


def commands() -> list[list[str]]:
    """Return each simple command of README's blocks."""
    rows = [row for text in blocks("sh") for row in text.splitlines()]
    return [shlex.split(part, comments=True) for row in rows for part in row.split("&&")]


def name(command: list[str]) -> str:
    """Return the program, and the verb of one that has verbs."""
    return " ".join(command[:2]) if command[0] in ("rackwright", "make", "pip") else command[0]


def test_every_command_of_readme_is_run_by_a_test() -> None:
    named = {name(command) for command in commands() if command[0] not in ("cd", "make")}
    assert named == set(RUN_BY)
    for command, path in RUN_BY.items():
        verb = command.split()[-1]
        files = [ROOT / path] if (ROOT / path).is_file() else sorted((ROOT / path).rglob("*.py"))
        assert any(re.search(rf"\b{verb}\b", file.read_text()) for file in files), command


def test_what_readme_lets_make_do_is_in_the_makefile() -> None:
    targets = {command[1] for command in commands() if command[0] == "make"}
    assert targets == {"demo", "demo-down", "test"}
    assert targets - set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)) == set()


def _a_person_at_a_b200(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a host with 8 x B200 behind SSH, and an operator who chooses its profile."""
    machine = Machine("NVIDIA B200", 8, architecture="x86_64", driver="580.159.04", has_sudo=True)
    monkeypatch.setattr(init, "read_machines", lambda hosts, ask: dict.fromkeys(hosts, machine))
    monkeypatch.setattr(init, "answer_to", lambda _: "b200")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)


def test_the_first_commands_make_a_site_that_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    password_store = tmp_path / "bin" / "pass"
    password_store.parent.mkdir()
    password_store.write_text("#!/bin/sh\necho of-ngc\n")
    password_store.chmod(0o755)
    monkeypatch.setenv("PATH", f"{password_store.parent}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    first = [command for command in commands() if name(command) in ("rackwright init", "cd", "rackwright check")]
    assert [command[:2] for command in first[:3]] == [["rackwright", "init"], ["cd", "site"], ["rackwright", "check"]]
    _a_person_at_a_b200(monkeypatch)
    assert main(first[0][1:]) == 0
    assert '("10.0.0.7", {"ssh_user": "ops"})' in Path("site/inventory/b200.py").read_text()
    output = capsys.readouterr().out
    assert all(text in output for text in blocks(""))
    monkeypatch.chdir("site")
    for text in blocks("yaml"):
        Path(text.split()[1]).write_text(text)
    assert main(first[2][1:]) == 0
    assert "10.0.0.7 (b200) llm: tensorrt-llm" in capsys.readouterr().out


def test_the_table_of_machines_is_that_of_the_profiles() -> None:
    engines: dict[str, set[str]] = defaultdict(set)
    models: dict[str, set[str]] = defaultdict(set)
    for each in map(catalog.profile, catalog.names()):
        machine = each.machine.removesuffix(" compute tray")
        engines[machine].add(each.engine)
        models[machine].add(each.model)
    rows = re.findall(r"^\| (\S.*?) \| ([^|]*TensorRT-LLM[^|]*) \| ([^|]+) \| [^|]+ \|$", README, re.MULTILINE)
    assert {machine for machine, _, _ in rows} == {machine for machine in engines if not machine.startswith("any")}
    for machine, its_engines, its_models in rows:
        assert set(its_engines.split(", ")) == engines[machine], machine
        shown = [KNOWN[model] for model in its_models.split(", ")]
        assert all(any(part in model for part in shown) for model in models[machine]), machine
        assert all(any(part in model for model in models[machine]) for part in shown), machine
