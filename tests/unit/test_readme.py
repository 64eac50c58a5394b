"""README: its commands are typed, here or on lab hosts, and its tables are of today."""

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
from tests.pages import (
    CHANGES,
    ELSEWHERE,
    ENDS,
    GOES_WRONG,
    Edited,
    Program,
    Typed,
    acts,
    typed_commands,
)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PAGES = ("README.md", "docs/tutorial.md")
PAGE = """\
## 1. One
1. In a list:
    ```sh
    make a && cd a # what it is

    ```
Add this to `x.yml`, with a mistake:

```
y: 1
```
## 2. Two
```
$ check
RW0101: no
```
```yaml
# x.yml
y: 2
```
Take the two lines out again.
```python
a()
```
```
what is shown
```
"""
KNOWN = {
    "gpt-oss-120b": "gpt-oss-120b",
    "DeepSeek-R1": "DeepSeek-R1",
    "Llama 3.3 70B": "Llama-3.3-70B",
    "Qwen3-30B": "Qwen3-30B",
    "Qwen3-235B": "Qwen3-235B",
    "Qwen3.6-35B": "Qwen3.6-35B",
    "Qwen3.5-397B": "Qwen3.5-397B",
    "Qwen3.8": "Qwen3.8-",
    "DeepSeek-V4-Flash": "DeepSeek-V4-Flash",
    "Nemotron 3 Super": "Nemotron-3-Super",
    "Nemotron 3 Nano": "Nemotron-3-Nano",
    "MiniMax-M3": "MiniMax-M3",
    "Kimi-K3": "Kimi-K3",
    "GLM-5": "GLM-5-FP8",
    "GLM-5.3-Flash": "GLM-5.3-Flash",
    "Gemma 4 31B": "gemma-4-31B",
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


def test_every_command_of_a_page_is_typed_on_lab_hosts_or_has_a_reason() -> None:
    """tests/lab/test_pages.py types what is read here."""
    readme = typed_commands("README.md")
    assert [shlex.split(part) for command in readme for part in command.split("&&")] == commands()
    assert set(ELSEWHERE) | set(CHANGES) <= set(readme)
    everything = {(act.section, act.command) for page in PAGES for act in acts(page) if isinstance(act, Typed)}
    assert set(ENDS) <= everything
    assert {act.section for act in acts("docs/tutorial.md") if isinstance(act, Program)} == {GOES_WRONG}


def test_a_page_is_read_in_its_order(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert acts(str(page)) == [
        Typed("1. One", "make a && cd a"),
        Edited("1. One", "x.yml", "y: 1\n"),
        Typed("2. Two", "check"),
        Edited("2. Two", "x.yml", "# x.yml\ny: 2\n"),
        Edited("2. Two", "x.yml", ""),
        Program("2. Two", "a()\n"),
    ]


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
    rows = re.findall(r"^\| (\S.*?) \| ([^|]*(?:TensorRT-LLM|vLLM)[^|]*) \| ([^|]+) \| [^|]+ \|$", README, re.MULTILINE)
    assert {machine for machine, _, _ in rows} == {machine for machine in engines if not machine.startswith("any")}
    for machine, its_engines, its_models in rows:
        assert set(its_engines.split(", ")) == engines[machine], machine
        shown = [KNOWN[model] for model in its_models.split(", ")]
        assert all(any(part in model for part in shown) for model in models[machine]), machine
        assert all(any(part in model for model in models[machine]) for part in shown), machine
