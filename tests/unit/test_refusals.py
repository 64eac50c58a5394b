"""Every refusal has a code: all raises, findings, checks and rows say one, and the table explains each."""

from __future__ import annotations

import ast
import contextlib
import re
import runpy
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rackwright.cli.main import main, parsed, parser
from rackwright.concerns.endpoint.peers import peer_verdict
from rackwright.concerns.endpoint.proof import chat, container_rows, full, gpu_errors, proof_row, transport
from rackwright.concerns.endpoint.proof.codes import CODES, OTHER, code_of
from rackwright.concerns.endpoint.quality import long_prompt, quality_verdict
from rackwright.concerns.preflight.concern import CHECKS
from rackwright.messages import RackwrightError, coded
from rackwright.refusals import by_code, sections

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rackwright"
BENCH = ROOT / "packages" / "bench" / "rackwright_bench"
ENGINES = ROOT / "packages" / "engines" / "rackwright_engines"
CODE = re.compile(r"RW\d{4}")
WITHOUT: set[str] = set()
"""Raises without a code, as `file: class`. It only shrinks, and is empty: the next one gets its code at once."""
SAID = {
    "'nothing was done'",
    r"f'\nrackwright: {str(error) or 'interrupted'}'",
    "f'rackwright: {error}'",
    "f'rackwright: {paragraph(text)}'",
    "f'{name}: {paragraph(trouble or 'lease ended')}'",
    "f'rackwright: {printable(text)}'",
}
"""What commands print to standard error without a code of its own: an answer, a warning, or an error that has one."""
FILES = {"spec.json", "deploy.py", "owned.json", "daemon.json", "host.data"}
"""Names in the table that look like settings."""


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the product's Python, but for what hosts run on their own."""
    paths = sorted(path for folder in (PACKAGE, BENCH, ENGINES) for path in folder.rglob("*.py"))
    return {path: ast.parse(path.read_text()) for path in paths if "host" not in path.parts}


def place_of(path: Path) -> str:
    """Return a file's path below its package; those beside the product are as its folders."""
    folder = next(folder for folder in (PACKAGE, BENCH, ENGINES) if path.is_relative_to(folder))
    return f"{folder.name.removeprefix('rackwright').lstrip('_')}/{path.relative_to(folder)}".removeprefix("/")


@cache
def errors() -> dict[str, str]:
    """Our classes of errors by name, with the code of the class: its own, or its parents'."""
    found = {RackwrightError.__name__: ""}
    bases = {
        node.name: (node, [base.id for base in node.bases if isinstance(base, ast.Name)])
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    while new := {name for name, (_, above) in bases.items() if name not in found and set(above) & found.keys()}:
        for name in new:
            node, above = bases[name]
            found[name] = own_code(node) or next((found[base] for base in above if found.get(base)), "")
    return found


def own_code(node: ast.ClassDef) -> str:
    """Return the code in the class's line `code = "RW..."`."""
    for statement in node.body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "code":  # type: ignore[attr-defined]
            return str(ast.literal_eval(statement.value))
    return ""


def uncoded() -> Iterator[str]:
    """Find each place that makes an error of Rackwright without a code."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors():
                name = node.func.id
                has_code = (
                    errors()[name] or name == "RefusedError" or any(keyword.arg == "code" for keyword in node.keywords)
                )
                if not has_code:
                    yield f"{place_of(path)}: {name}"


def used() -> Iterator[tuple[str, str]]:
    """Find each code in the product's code, with the file below rackwright/ that has it."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                yield node.value, place_of(path)


def test_no_error_is_raised_without_a_code() -> None:
    assert set(uncoded()) == WITHOUT, "give it `code=` and a row of its subject's file in rackwright/data/refusals/"


def test_no_settings_misfit_without_a_code() -> None:
    bare = [
        f"{path.name}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if path.parent.name == "settings" and isinstance(node, ast.Call) and ast.unparse(node.func) == "MisfitError"
        if not any(keyword.arg == "code" for keyword in node.keywords)
    ]
    assert bare == []


def test_what_fails_a_host_without_an_error_has_a_code_too() -> None:
    """A text of its own is an f-string or a constant; whatever has a code is a call of `coded`, or an error's."""
    bare = [
        f"{place_of(path)}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("fail", "complain")
        if isinstance(node.args[-1], ast.JoinedStr | ast.Constant)
    ]
    assert bare == []


def refusals_to_stderr() -> Iterator[tuple[str, str]]:
    """Find each text that a command prints to standard error itself, or exits with: its place, and its source."""
    for path in sorted((*(PACKAGE / "cli").glob("*.py"), BENCH / "command.py")):
        for call in ast.walk(trees()[path]):
            if isinstance(call, ast.Call) and goes_to_stderr(call):
                # Which quotes `unparse` gives an f-string differs from Python to Python.
                yield f"{path.name}:{call.lineno}", ast.unparse(call.args[-1]).replace('"', "'")


def goes_to_stderr(call: ast.Call) -> bool:
    """Return True for a print, a write, or argparse's `exit(status, message)`."""
    name, to = (
        ast.unparse(call.func),
        [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "file"],
    )
    exits = name.endswith(".exit") and len(call.args) > 1
    return exits or name == "sys.stderr.write" or any("sys.stderr" in target for target in to)


def test_no_command_prints_a_refusal_without_a_code() -> None:
    found = dict(refusals_to_stderr())
    assert [
        f"{location}: {text}" for location, text in found.items() if text not in SAID and "coded(" not in text
    ] == []
    assert set(found.values()) >= SAID, "no longer said"


@pytest.mark.parametrize(
    ("words", "code"), [(["rolout"], "RW1023"), (["status", "i.py", "--frob"], "RW1024"), (["explain"], "RW1024")]
)
def test_a_word_that_is_not_understood_has_a_code(
    words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.suppress(SystemExit):
        main(words)
    assert f": {code}: " in capsys.readouterr().err


def test_a_word_too_many_is_answered_with_the_usage_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        main(["advise", "inventory/b200.py"])
    error = capsys.readouterr().err
    assert error.startswith("usage: rackwright advise ")
    assert "next: rackwright advise --help" in error


def test_the_walk_sees_the_errors() -> None:
    assert {"SettingsError", "StepFailedError", "RolledBackError", "SourceError"} <= errors().keys()
    assert errors()["LeaseHeldError"] != errors()["NotStartedError"] == ""


def test_no_code_stands_for_two_causes() -> None:
    codes = Counter(refusal.code for section in sections() for refusal in section.refusals)
    assert [code for code, times in codes.items() if times > 1] == []
    assert all(CODE.fullmatch(code) for code in codes)


def test_each_subject_has_a_range_of_its_own() -> None:
    ranges = {section.heading: {refusal.code[:4] for refusal in section.refusals} for section in sections()}
    assert {heading: len(found) for heading, found in ranges.items() if len(found) != 1} == {}
    assert len({min(found) for found in ranges.values()}) == len(ranges)


def test_each_code_that_is_raised_has_a_row_and_each_row_is_raised() -> None:
    raised = {code for code, _ in used()}
    assert sorted(raised - set(by_code())) == [], "no row in rackwright/data/refusals/"
    earlier = {code for code, (_, refusal) in by_code().items() if refusal.earlier}
    assert sorted(set(by_code()) - raised) == sorted(earlier), "said nowhere; or said, and `earlier`"


def test_each_text_of_a_code_says_more_than_its_message() -> None:
    for section in sections():
        for refusal in section.refusals:
            assert refusal.says, refusal.code
            for text in filter(None, (refusal.means, refusal.next)):
                assert set(re.findall(r"\w+", text.lower())) - set(re.findall(r"\w+", refusal.says.lower())), (
                    refusal.code
                )
        assert all(not entry.code or entry.code in by_code() for entry in section.lines), section.heading


def test_each_check_and_each_row_of_the_gate_has_one_of_its_own() -> None:
    assert {check.code: check.name for check in CHECKS} == says("Preflight", "RW3101")
    assert {code: name for name, code in CODES.items()} == says("The gate's rows", OTHER)


def says(heading: str, but: str) -> dict[str, str]:
    """Return the names in a subject's table, by code."""
    refusals = next(section.refusals for section in sections() if section.heading == heading)
    return {refusal.code: refusal.says for refusal in refusals if refusal.code != but}


def test_the_gate_s_rows_are_those_that_have_codes() -> None:
    checks = {
        node.args[0].value if isinstance(node.args[0], ast.Constant) else constant(node.args[0])
        for path, tree in trees().items()
        if path.parent.name in ("proof", "quality", "rollout")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Question"
    }
    assert {*checks, quality_verdict.ROW, peer_verdict.ROW} == set(CODES)


def constant(node: ast.expr) -> str:
    assert isinstance(node, ast.Name)
    rows = (full, chat, container_rows, gpu_errors, long_prompt, proof_row, transport)
    return str(next(vars(module)[node.id] for module in rows if node.id in vars(module)))


def test_a_row_of_another_version_has_a_code_too() -> None:
    assert code_of(["a row of tomorrow"]) == OTHER
    assert code_of([]) == OTHER
    assert code_of(["a chat answer", "speed"]) == CODES["a chat answer"]


def test_the_code_comes_first_and_once() -> None:
    assert str(RackwrightError("it is broken; next: ls", code="RW0101")) == "RW0101: it is broken; next: ls"
    assert RackwrightError("it is broken", code="RW0101").text == "it is broken"
    assert coded("", "it is broken") == "it is broken"


def test_pyinfra_prints_the_code_too() -> None:
    printed = subprocess.run([sys.executable, "-c", PRINTED], check=True, capture_output=True, text=True).stderr
    assert "error: RW0101: wrong port" in re.sub(r"\x1b\[\d*m", "", printed)


PRINTED = """
from pyinfra_cli.exceptions import WrappedError
from pyinfra_cli.log import setup_logging
from rackwright.messages import RackwrightError
setup_logging(20)
WrappedError(RackwrightError("wrong port", code="RW0101")).show()
"""
"""In a process of its own: pyinfra's command patches it for gevent."""


def test_the_text_that_explains_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "rw0705"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("RW0705: another run writes to this host:\n  Connections, leases")
    assert "  next: wait, or break the lease (docs/how-to/leases.md)\n" in out


def test_explain_says_which_code_is_of_earlier_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RW0509"]) == main(["explain", "RW0503"]) == 0
    assert capsys.readouterr().out.count("of earlier versions") == 1


def test_explain_prints_no_heading_without_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    bare = [code for code, (_, refusal) in by_code().items() if not refusal.means and not refusal.next]
    assert main(["explain", bare[0]]) == 0
    assert not re.search(r"(?m)(what it means|next):", capsys.readouterr().out)


def test_explain_knows_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    for code in by_code():
        assert main(["explain", code]) == 0
        assert f"{code}: " in capsys.readouterr().out


def test_explain_begins_with_words(capsys: pytest.CaptureFixture[str]) -> None:
    for code in by_code():
        assert main(["explain", code]) == 0
        out = capsys.readouterr().out
        assert re.match(rf"{code}: [\w…]", out) or re.match(rf"{code}: --\w", out), out


def test_explain_of_an_unknown_code_names_the_nearest_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RW0799"]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith(
        "rackwright: RW1017: no message has the code RW0799 (did you mean RW0709 or RW0729 or RW0769?)"
    )


def test_the_page_on_failures_is_made_from_the_table() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "failures.py"))
    assert made["PAGE"].read_text() == made["page"](), "next: python scripts/failures.py"


def advice() -> list[str]:
    """All next steps of the table."""
    refusals = [row.next for section in sections() for row in section.refusals]
    return refusals + [entry.next for section in sections() for entry in section.lines]


def commands() -> list[str]:
    """Return every command of Rackwright that the table advises."""
    return sorted({found for text in advice() for found in re.findall(r"`(rackwright [^`]*)`", text)})


@pytest.mark.parametrize("command", commands())
def test_each_command_that_the_table_advises_parses(command: str) -> None:
    parsed(parser(), shlex.split(command)[1:])  # exits, and says why, for what it does not know


def test_each_setting_that_the_table_names_is_one() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    named = {found for text in advice() for found in re.findall(r"`([a-z_]+\.[a-z_]+)`", text)} - FILES
    assert {name for name in named if name.partition(".")[2] not in page} == set()


def test_a_code_that_is_near_none_has_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RW9999"]) == 1
    assert "did you mean" not in capsys.readouterr().err
