"""Writes what two pages have from the code, between their markers: one run, and the floor plan.

Run it with `python scripts/drawings.py`; tests/unit/test_drawings.py compares the pages with what it would write.
The floor plan is the import contract of pyproject.toml with the imports that are really there. One run is what
deploy.py calls, with its own comments, and the questions of the proof.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGES = {"one run": ROOT / "docs" / "how-it-works.md", "floor plan": ROOT / "docs" / "contribute" / "floor-plan.md"}
PRODUCT = "rackwright"
PACKAGES = {PRODUCT: ROOT, "rackwright_engines": ROOT / "packages" / "engines"}
"""Where each package of the floor plan lies."""
CONTRACT = "Each layer imports only those below it"
PROOF = "concerns/endpoint/proof"
ROWS = (
    "chat.py",
    "container_rows.py",
    "full.py",
    "speed.py",
    "drafts.py",
    "sampling.py",
    "plain_text.py",
    "engine_steps.py",
)

BEFORE = (
    ("your machine", "settings: `group_vars/` and `host_vars/`, checked before any connection"),
    ("your machine", "`deploy.py`, once offline: which steps are managed"),
    ("each host", "one command reads what is there"),
)
"""Of one run: where, and what."""
SWITCH = (
    ("the host's job", "the switch: stop the old release, start the new one, wait until /health answers"),
    ("the host's job", "the proof, as far as the endpoint can give it: {proof}"),
    ("the host's job", "all answers right: commit. One wrong: the last proven release serves again, and is asked too"),
)
"""What the step `endpoint` begins; it ends on its own, even when the control machine is gone."""

Edges = Mapping[int, frozenset[int]]
"""Floors that a floor imports, by its number; the top one is 0."""


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        page.write_text(drawn(name, page.read_text()))
        print(page)


def drawn(name: str, text: str) -> str:
    """Return a page with its part as it must be. Raises ValueError when it lacks the markers."""
    begin, end = f"<!-- {name}: made by scripts/drawings.py -->\n", f"<!-- end of {name} -->"
    before, found, remaining = text.partition(begin)
    _, closed, after = remaining.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no markers for {name!r}")
    lines = {"floor plan": floor_plan, "one run": one_run}[name]()
    return f"{before}{begin}\n{chr(10).join(lines)}\n\n{end}{after}"


# -- the floor plan


def floor_plan() -> Iterator[str]:
    """One row a floor: what is on it, and the floors that it leans on; those that others imply are left out."""
    floors = [re.split(r"\s*[|:]\s*", layer) for layer in contract()["layers"]]
    excused = exceptions(floors)
    edges = imports(floors, excused)
    yield from ("| floor | what is on it | imports |", "|---|---|---|")
    for number, floor in enumerate(floors):
        below = [str(lower + 1) for lower in sorted(direct(edges, number))]
        below += [f"{lower + 1} (exception)" for upper, lower in sorted(excused) if upper == number]
        yield f"| {number + 1} | {_labels(floor)} | {', '.join(below)} |"


def contract() -> dict[str, list[str]]:
    """Return the contract that `make lint` holds the product's imports to. Raises KeyError when it has another name."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {one["name"]: one for one in found}[CONTRACT]


def imports(floors: list[list[str]], excused: set[tuple[int, int]]) -> Edges:
    """Return what each floor imports of the others, without the contract's exceptions."""
    graph = grimp.build_graph(*PACKAGES)
    found: dict[int, set[int]] = {number: set() for number in range(len(floors))}
    for module in graph.modules:
        upper = _floor(module, floors)
        for lower in (_floor(imported, floors) for imported in graph.find_modules_directly_imported_by(module)):
            if upper is not None and lower is not None and upper != lower and (upper, lower) not in excused:
                found[upper].add(lower)
    return {number: frozenset(others) for number, others in found.items()}


def exceptions(floors: list[list[str]]) -> set[tuple[int, int]]:
    """Pairs of floors between which the contract excuses an import."""
    lines = contract().get("ignore_imports", [])
    pairs = [tuple(_floor(module, floors) for module in pair.split(" -> ")) for pair in lines]
    return {(upper, lower) for upper, lower in pairs if upper is not None and lower is not None}


def direct(edges: Edges, floor: int) -> set[int]:
    """Return what a floor imports and reaches through no other floor."""
    return {other for other in edges[floor] if not any(_reaches(edges, via, other) for via in edges[floor] - {other})}


def _reaches(edges: Edges, start: int, goal: int) -> bool:
    return start == goal or any(_reaches(edges, below, goal) for below in edges[start])


def _floor(module: str, floors: list[list[str]]) -> int | None:
    """Return the floor that a module is on; None for the package itself and what the contract does not name."""
    held = (n for n, floor in enumerate(floors) if any(f"{module}.".startswith(f"{room}.") for room in floor))
    return next(held, None)


def _label(room: str) -> str:
    name = room.removeprefix(f"{PRODUCT}.").replace(".", "/")
    folder = PACKAGES[room.partition(".")[0]] / room.replace(".", "/")
    return f"{name}/" if folder.is_dir() else f"{name}.py"


def _labels(floor: list[str]) -> str:
    """Return the rooms of a floor as paths; a floor that is one folder's goes by its name."""
    folders = {_label(room).partition("/")[0] for room in floor}
    labels = [f"{folders.pop()}/"] if len(floor) > 1 and len(folders) == 1 else list(map(_label, floor))
    return ", ".join(f"`{label}`" for label in labels)


# -- one run


def one_run() -> Iterator[str]:
    """From the command to the proof."""
    yield from ("| | where | what |", "|---|---|---|")
    rows = [*BEFORE, *(row for step in steps() for row in _step_rows(*step))]
    proof = ", ".join(questions())
    yield from (f"| {number} | {where} | {what.format(proof=proof)} |" for number, (where, what) in enumerate(rows, 1))


def _step_rows(name: str, comment: str) -> Iterator[tuple[str, str]]:
    yield "each host", f"**{name}**: {comment}"
    yield from SWITCH if name == "endpoint" else ()


def steps() -> list[tuple[str, str]]:
    """Return the calls of deploy.py in their order, each with the comment behind it."""
    lines = (ROOT / "deploy.py").read_text().splitlines()
    found = (re.fullmatch(r"(\w+)\(\)  # (.+)", row) for row in lines)
    return [(match[1], match[2].replace('"', "'")) for match in found if match]


def questions() -> list[str]:
    """Names of the rows that the proof can have, in the order of its files."""
    names = [name for file in ROWS for name in _question_rows(ast.parse((ROOT / PRODUCT / PROOF / file).read_text()))]
    return list(dict.fromkeys(names))


def _question_rows(tree: ast.Module) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in sorted(calls, key=lambda node: node.lineno):
        if isinstance(call.func, ast.Name) and call.func.id == "Question":
            name = call.args[0]
            yield str(name.value if isinstance(name, ast.Constant) else constants[getattr(name, "id", "")])


if __name__ == "__main__":
    main()
