"""A run's memory is its own: it is on its State, and no module of the product remembers anything else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyinfra.api import State

import rackwright
from rackwright.adapter.run_context import part_of, share

PACKAGE = Path(rackwright.__file__).parent
OF_NO_RUN = {
    ("concerns/endpoint/proof/proof_row.py", "RULES"),  # filled while the module is imported
    ("concerns/endpoint/release/concern.py", "_rendered"),  # equal arguments, equal release
    ("record/journal.py", "_failed"),  # what this process has complained of already
    ("messages.py", "_inventory"),  # one process works on one inventory
    ("masks.py", "_secrets"),  # a secret that was read once is masked in whatever this process prints
    ("settings/ssh/openssh.py", "_answers"),  # equal questions to ssh, equal answers
    ("loading/secret_commands.py", "_answers"),  # a secret's command runs once, however many load settings
    ("loading/secret_commands.py", "_given"),  # what this process's children read of it
}
MAKERS = ("dict", "list", "set", "defaultdict", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet")


@dataclass
class Notes:
    lines: list[str] = field(default_factory=list)


def test_two_runs_of_one_process_share_nothing() -> None:
    one, other = State(), State()
    part_of(one, Notes).lines.append("seen")
    assert (part_of(one, Notes).lines, part_of(other, Notes).lines) == (["seen"], [])


def test_a_run_may_go_by_a_part_of_another() -> None:
    one, other = State(), State()
    share(Notes, one, other)
    part_of(other, Notes).lines.append("seen")
    assert part_of(one, Notes).lines == ["seen"]


def filled_later(tree: ast.Module) -> Iterator[str]:
    """Names of a module that hold something empty, which can only mean that it is filled while the process runs."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        value = node.value
        made = isinstance(value, ast.Call) and getattr(value.func, "id", "") in MAKERS and not value.args
        if made or (isinstance(value, ast.Dict | ast.List) and ast.unparse(value) in ("{}", "[]")):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_no_module_remembers_a_run() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        for name in filled_later(ast.parse(path.read_text()))
    }
    assert found == OF_NO_RUN
    assert not [path for path in PACKAGE.rglob("*.py") if "\n    global " in path.read_text()]
