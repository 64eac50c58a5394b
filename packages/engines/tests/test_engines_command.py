"""`python -m rackwright_engines`: YAML, JSON or a command line, one or many, and a status for each kind of answer."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rackwright_engines import command
from rackwright_engines.command import FINE, REFUSED, UNREADABLE, main
from rackwright_engines.datasets import used

VLLM = ("check", "--engine", "vllm", "--version", "0.33.0")
TRT = ("check", "--engine", "tensorrt-llm", "--version", "1.2.0")


class Typed(io.TextIOWrapper):
    """Standard input with these bytes."""


def ask(words: tuple[str, ...], text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    raw = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", Typed(io.BytesIO(raw)))
    return main(words)


def answers(out: str) -> list[dict[str, Any]]:
    return [json.loads(row) for row in out.splitlines()]


def codes(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(found["code"], found["key"]) for found in answer["findings"] if found["level"] == "refuse"]


@pytest.mark.parametrize(
    "text",
    [
        "max-model-len: 8192\nmax-num-seqz: 8\n",
        '{"max-model-len": 8192, "max-num-seqz": 8}',
        "vllm serve openai/gpt-oss-120b --max-model-len 8192 \\\n  --max-num-seqz=8",
        "# as it is started\n--max-model-len 8192 --max-num-seqz 8 --enforce-eager -O3",
        "python3 -m vllm.entrypoints.openai.api_server --max_model_len 8192 --max-num-seqz 8",
        '["--max-model-len", "8192", "--max-num-seqz", "8"]',
    ],
)
def test_a_wrong_option_is_refused_in_every_form(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask((*VLLM, "--json", "-"), text, monkeypatch) == REFUSED
    (answer,) = answers(capsys.readouterr().out)
    assert codes(answer) == [("RW0301", "max-num-seqz")]
    assert answer["findings"][0]["near"] == "max-num-seqs"
    assert (answer["engine"], answer["version"], answer["refused"]) == ("vllm", "0.33.0", 1)
    assert answer["data"] == used().version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "max-model-len: 8192",
        "vllm serve x --max-model-len 8192 --no-enable-prefix-caching -tp 8 -O3",
        "vllm serve --enforce-eager openai/gpt-oss-120b --gpu-memory-utilization 0.9 --port 8000 --host 0.0.0.0",
        """vllm serve x --speculative-config '{"method": "eagle3", "num_speculative_tokens": 3, "model": "d/raft"}'""",
    ],
)
def test_right_options_are_taken(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask((*VLLM, "--json"), text, monkeypatch) == FINE
    (answer,) = answers(capsys.readouterr().out)
    assert answer["findings"] == []


def test_a_file_is_read_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("kv_cache_config: {free_gpu_memory_fractoin: 0.9}\n")
    assert main((*TRT, str(file))) == REFUSED
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("refuse RW0301 kv_cache_config.free_gpu_memory_fractoin: ")
    assert last.startswith("TensorRT-LLM 1.2.0: 1 refused, 0 warnings")


def test_model_and_gpu_are_judged_where_they_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*VLLM, "--json", "--model", "openai/gpt-oss-120b")
    assert ask(words, "max-model-len: 200000", monkeypatch) == REFUSED
    assert codes(answers(capsys.readouterr().out)[0]) == [("RW0363", "max-model-len")]
    assert ask((*words, "--gpu", "L40S"), "{}", monkeypatch) == FINE
    (answer,) = answers(capsys.readouterr().out)
    assert ("warn", "RW0313") in [(found["level"], found["code"]) for found in answer["findings"]]


def test_no_answer_speaks_of_settings_of_rackwright(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(("check", "--engine", "vllm", "--version", "nightly"), "max-num-seqz: 8", monkeypatch)
    out = capsys.readouterr().out
    assert "RW0338" in out
    assert "accept_known_bad" not in out
    assert "rackwright" not in out.replace("rackwright_engines", "")


BATCH = (
    ({"engine": "vllm", "version": "0.33.0", "options": {"max-num-seqs": 8}}, FINE),
    ({"engine": "sglang", "version": "v0.5.23", "options": "--tp 8 --foo"}, REFUSED),
    ({"engine": "tensorrt-llm", "version": "1.2.0", "options": {"max_batch_size": "many"}}, REFUSED),
    ({"engine": "vllm", "version": "0.33.0"}, FINE),
)


def test_a_batch_answers_each_line_in_its_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n\n".join(json.dumps(question) for question, _ in BATCH)
    assert ask(("check", "--batch"), text, monkeypatch) == REFUSED
    found = answers(capsys.readouterr().out)
    assert [answer["line"] for answer in found] == [1, 3, 5, 7]
    assert [bool(answer["refused"]) for answer in found] == [status == REFUSED for _, status in BATCH]


@pytest.mark.parametrize(
    "row",
    [
        "foo",
        "[1]",
        '{"engine": "triton", "version": "1.0"}',
        '{"engine": ["vllm"], "version": "1.0"}',
        '{"engine": "vllm"}',
        '{"engine": "vllm", "version": "../x"}',
        '{"engine": "vllm", "version": "0.33.0", "options": 3}',
        '{"engine": "vllm", "version": "0.33.0", "options": [1]}',
        '{"engine": "vllm", "version": "0.33.0", "option": {}}',
        '{"engine": "vllm", "version": "0.33.0", "hosts": 0}',
        '{"engine": "vllm", "version": "0.33.0", "gpus": 8}',
        '{"engine": "vllm", "version": "0.33.0", "model": {}}',
        '{"engine": "vllm", "version": "0.33.0", "environment": []}',
        '{"engine": "vllm", "version": "0.33.0", "options": "--x \'"}',
        "[" * 100_000,
        '{"engine": "vllm", "version": "0.33.0", "options": "' + "[" * 5000 + '"}',
        b"\xff\xfe",
    ],
    ids=lambda row: str(row)[:40],
)
def test_a_line_that_cannot_be_read_is_an_answer_too(
    row: str | bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = row if isinstance(row, bytes) else row.encode()
    right = json.dumps(BATCH[0][0]).encode()
    assert ask(("check", "--batch"), raw + b"\n" + right, monkeypatch) == UNREADABLE
    wrong, after = answers(capsys.readouterr().out)
    assert (wrong["line"], after["line"], after["refused"]) == (1, 2, 0)
    assert wrong["error"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (VLLM, "a: [\n"),
        (VLLM, "- 1\n"),
        (VLLM, "just a sentence"),
        (VLLM, "vllm serve 'x"),
        (VLLM, b"\xff\xfe\x00"),
        (VLLM, "a: " + "[" * 5000),
        (VLLM[:3], "{}"),
        (("check", "--version", "0.33.0"), "{}"),
        ((*VLLM[:3], "--version", "a b"), "{}"),
        ((*VLLM, "/nowhere/at/all"), ""),
        ((*VLLM, "/"), ""),
        ((*VLLM, "--batch"), ""),
    ],
)
def test_a_question_that_cannot_be_read_is_one_line(
    words: tuple[str, ...],
    text: str | bytes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(words, text, monkeypatch) == UNREADABLE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_what_is_too_long_is_refused_unread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "SIZE", 100)
    assert ask(VLLM, "#" * 101, monkeypatch) == UNREADABLE
    assert ask(("check", "--batch"), "#" * 1000, monkeypatch) == UNREADABLE
    assert len(answers(capsys.readouterr().out)) == 1


def test_the_data_that_are_used_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("data",)) == FINE
    assert capsys.readouterr().out.startswith(str(used()))


def test_it_runs_as_a_module_of_python_and_without_the_product(tmp_path: Path) -> None:
    """Beside it only what its pyproject.toml names may be loaded."""
    code = (
        "import sys\nfrom rackwright_engines.command import main\n"
        "status = main(['check', '--engine', 'vllm', '--version', '0.33.0'])\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], input="{}", capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert not [name for name in ("rackwright'", "pyinfra", "paramiko", "gevent", "jinja2") if f"'{name}" in loaded]
    words = [sys.executable, "-m", "rackwright_engines", *VLLM]
    piped = subprocess.run(words, input="x-y-z: 1", capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (piped.returncode, piped.stderr) == (REFUSED, "")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "rackwright_engines", *VLLM]
    done = subprocess.run(words, input=b"{}", stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (REFUSED, b"")


def test_aliases_of_aliases_end_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["k0: &k0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert ask(VLLM, "\n".join([*rows, "max-num-seqs: *k8"]), monkeypatch) == UNREADABLE
    assert ask(VLLM, "max-num-seqs: &a [*a]", monkeypatch) == UNREADABLE


def test_a_message_shows_the_beginning_of_a_long_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(VLLM, f"max-num-seqs: '{'x' * 100_000}'", monkeypatch) == REFUSED
    assert len(capsys.readouterr().out) < 1000
