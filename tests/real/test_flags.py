"""`vllm serve` as it reads its command line and its file: the stand-in takes and refuses what a real one does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from rackwright_lab.standins.hub_content import Store
from tests.programs.standin_process import Bench
from tests.real import moved
from tests.real.chosen import BUILD

pytestmark = pytest.mark.lab

NO_MODEL = "/nothing/at-all"
"""What is accepted ends too, a moment later: the model does not exist."""
TRY = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from vllm.entrypoints.cli.main import main

for words in json.load(sys.stdin):
    read, write = os.pipe()
    if os.fork() == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        sys.argv = ["vllm", "serve", *words]
        try:
            code = main() or 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.close(write)
    with os.fdopen(read, errors="replace") as said:
        text = said.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.wait()[1]), text[-3000:]]), flush=True)
"""
"""Each command line in a child of one process that has loaded vLLM: loading takes 10 s."""


@dataclass(frozen=True)
class Case:
    """Words for `vllm serve`, a file for its --config, and what a refusal names."""

    words: tuple[str, ...] = ()
    config: str | None = None
    named: str = ""


CASES = {
    "a number": Case(("--max-model-len", "1024")),
    "a number with an equals sign": Case(("--max-model-len=1024",)),
    "a number for people": Case(("--max-model-len", "8k")),
    "a short flag": Case(("-tp", "1")),
    "underscores": Case(("--tensor_parallel_size", "1")),
    "a flag with no": Case(("--no-enable-prefix-caching",)),
    "a mapping": Case(("--override-generation-config", '{"temperature": 0}')),
    "a dotted flag": Case(("--override-generation-config.temperature", "0")),
    "an unknown flag": Case(("--nonsense", "1"), named="nonsense"),
    "a word for a number": Case(("--max-model-len", "many"), named="max-model-len"),
    "an unknown choice": Case(("--kv-cache-dtype", "fp9"), named="kv-cache-dtype"),
    "a flag without its value": Case(("--max-model-len",), named="max-model-len"),
    "a mapping that is no JSON": Case(("--override-generation-config", "{temperature"), named="override-generation"),
    "a value for a flag without one": Case(("--enforce-eager=yes",), named="enforce-eager"),
    "a file": Case(config="max-model-len: 1024\nenforce-eager: true\n"),
    "a file with a flag that is off": Case(config="enforce-eager: false\n"),
    "a file with underscores": Case(config="max_model_len: 1024\n"),
    "a file with a mapping": Case(config="override-generation-config:\n  temperature: 0\n"),
    "a file with a mapping in a text": Case(config="override-generation-config: '{\"temperature\": 0}'\n"),
    "a file with an unknown key": Case(config="nonsense: 1\n", named="nonsense"),
    "a file with a word for a number": Case(config="max-model-len: many\n", named="max-model-len"),
    "a file that is a list": Case(config="- max-model-len\n"),
    "a file that is empty": Case(config=""),
}


def command_line(name: str, folder: str) -> list[str]:
    """Return the words of a case, with its file in a folder."""
    config = [] if CASES[name].config is None else ["--config", f"{folder}/{_file(name)}"]
    return [NO_MODEL, *config, *CASES[name].words]


def _file(name: str) -> str:
    return name.replace(" ", "-") + ".yaml"


def write_files(folder: Path) -> None:
    folder.mkdir()
    for name, case in CASES.items():
        if case.config is not None:
            (folder / _file(name)).write_text(case.config)


def outcomes(lines: str) -> dict[str, tuple[int, str]]:
    rows: list[Any] = [json.loads(row) for row in lines.splitlines() if row.startswith("[")]
    return {name: (code, message) for name, (code, message) in zip(CASES, rows, strict=True)}


@pytest.fixture(scope="module")
def real(worker_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Return the outcome of each case with the real one, in its image on the lived-in host."""
    host, folder = worker_lab.hosts[-1], tmp_path_factory.mktemp("real") / "files"
    write_files(folder)
    host.run("mkdir -p /tmp/flags")
    for file in folder.iterdir():
        host.run(f"cat >/tmp/flags/{file.name}", stdin=file.read_text())
    host.run("cat >/tmp/flags/try.py", stdin=TRY)
    commands = json.dumps([command_line(name, "/tmp/flags") for name in CASES])
    run = f"docker run --rm -i -v /tmp/flags:/tmp/flags:ro --entrypoint python3 {BUILD.image} /tmp/flags/try.py"
    return outcomes(host.run(run, stdin=commands, timeout=900).stdout)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[int, str]]]:
    """Return the outcome of each case with the stand-in."""
    folder = tmp_path_factory.mktemp("standin")
    bench = Bench(folder, "vllm", Store(folder / "hub"), folder)
    write_files(folder / "files")
    commands = json.dumps([command_line(name, str(folder / "files")) for name in CASES])
    argv = [sys.executable, "-c", TRY]
    done = subprocess.run(argv, input=commands, env=bench.environment(), capture_output=True, text=True, check=True)
    yield outcomes(done.stdout)
    bench.end_all()


@pytest.mark.parametrize("name", CASES)
def test_both_read_a_command_line_alike(
    real: dict[str, tuple[int, str]], ours: dict[str, tuple[int, str]], name: str
) -> None:
    (theirs, their_words), (emulated, own_words) = real[name], ours[name]
    alike = name not in moved.COMMAND_LINES.get(BUILD.version, {})
    assert (emulated == theirs) is alike, f"the real one says:\n{their_words}\nthe stand-in:\n{own_words}"
    for words in (their_words, own_words):
        assert CASES[name].named in words
