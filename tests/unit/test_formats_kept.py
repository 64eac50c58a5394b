"""What 0.1 wrote on hosts and in records is a format: each name of it is still known, so no sweep of words renames one.

tests/fixtures/formats-0.1.txt is what `scripts/formats.py` prints of that version (tests/lab/upgrade sees to it).
A name may go from the product only when nothing that 0.1 deployed needs it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rackwright.concerns.teardown.removal_order import unknown_kinds
from rackwright.plan.change import Owned
from rackwright.record.journal import Event
from rackwright.record.record import record_of
from rackwright.record.states import state_named
from rackwright.refusals import sections

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "rackwright"
BENCH = ROOT / "packages" / "bench" / "rackwright_bench"
FORMATS = (ROOT / "tests" / "fixtures" / "formats-0.1.txt").read_text().splitlines()
PARTS = re.compile(r"[A-Z][A-Z-]*[A-Z]|[*…/=]|(?<=^rackwright-)|(?<=^rackwright-job-)")
"""What parts the texts of which a name on a host is made; capitals stand for names of a site's own."""
OF_A_SITE = frozenset(
    {"/srv/models", "/srv/encodings", "eagle.yaml", "REPOSITORY--COMMIT/", "models_dir", "encodings_dir"}
)
"""Names on hosts that a site's settings choose."""


def of_kind(kind: str) -> list[str]:
    found = [name for entry in FORMATS for first, _, name in [entry.partition(" ")] if first == kind]
    assert found, f"no format of the kind {kind}: tests/fixtures/formats-0.1.txt is not whole"
    return found


@cache
def words() -> frozenset[str]:
    """Every text in the code of product and bench but their docstrings, and every word of its scripts and templates."""
    found = set[str]()
    for path in (*PRODUCT.rglob("*.py"), *BENCH.rglob("*.py")):
        found.update(texts_of(ast.parse(path.read_text())))
    return frozenset(found)


def texts_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring says what was meant, and reads nothing
            node.value = ast.Constant(None)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@cache
def scripts() -> str:
    """All scripts and templates of the product, those of a new site included."""
    folders = (PRODUCT, BENCH, ROOT / "templates")
    return "\n".join(
        path.read_text() for folder in folders for pattern in ("*.sh", "*.j2") for path in folder.rglob(pattern)
    )


@cache
def everything() -> str:
    return "\n".join([*words(), scripts()])


def test_no_code_of_a_refusal_is_gone() -> None:
    now = {refusal.code for section in sections() for refusal in section.refusals}
    assert set(of_kind("code")) - now == set()


def test_every_state_is_read() -> None:
    assert [state for state in of_kind("state") if state_named(state) is None] == []


def test_every_kind_of_belonging_is_taken_away_by_a_teardown() -> None:
    owned = frozenset(Owned(kind, "x") for kind in of_kind("belonging"))
    assert not unknown_kinds(owned)


@pytest.mark.parametrize("kind", of_kind("event"))
def test_every_event_of_a_record_is_known_by_its_name_and_its_keys(kind: str) -> None:
    keys = [key for first, _, key in (name.partition(" ") for name in of_kind("key")) if first == kind]
    assert [name for name in (kind, *keys) if name not in words()] == []


def test_a_record_is_folded_by_its_names() -> None:
    begin: Event = {"kind": "begin", "purpose": "rollout", "hosts": ["h"], "boots": {"h": "b"}, "process": {"pid": 1}}
    later: list[Event] = [
        {"kind": "phase", "name": "rollout"},
        {"kind": "stage", "host": "h", "concern": "docker", "changes": ["install"]},
        {"kind": "host", "host": "h", "state": "switching", "before": {"llm": "old"}},
        {"kind": "failure", "host": "h", "cause": "check", "check": "speed", "wave": 0, "fault": "release"},
        {"kind": "settings", "host": "h", "text": "no such image"},
        {"kind": "target", "host": "h", "to": {"llm": "old"}},
        {"kind": "host", "host": "h", "state": "rolled back", "text": "RW2401: why"},
        {"kind": "resumed", "by": "later"},
        {"kind": "end", "status": 3, "text": "rolled back"},
    ]
    found = record_of("r", [begin, *later])
    assert (found.hosts, found.states, found.resumed_by) == (["h"], {"h": "rolled back"}, "later")
    assert found.before == found.targets == {"h": {"llm": "old"}}
    assert found.touched == found.mistaken == {"h"}
    assert found.texts == {"h": "RW2401: why"}
    assert found.boots == {"h": "b"}
    assert [one.host for one in found.failures["rollout"]] == ["h"]
    assert found.end == later[-1]


@pytest.mark.parametrize("name", sorted(set(of_kind("on-host")) - OF_A_SITE))
def test_every_name_on_a_host_is_known(name: str) -> None:
    parts = [part.strip("/.-") for part in PARTS.split(name)]
    assert [part for part in parts if part not in everything()] == []


@pytest.mark.parametrize("name", of_kind("field"))
def test_every_field_of_a_file_on_a_host_is_read(name: str) -> None:
    _, field = name.split(" ")
    assert field in words()


def test_every_event_of_a_job_is_known() -> None:
    assert [name for name in of_kind("job-event") if name not in words()] == []
