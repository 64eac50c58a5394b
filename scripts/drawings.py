"""Draws the two pictures of docs/how-it-works.md, as Mermaid between the page's markers: the floor plan and one run.

Run it with `python scripts/drawings.py`; tests/unit/test_drawings.py compares the page with what it would write.
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
PAGE = ROOT / "docs" / "how-it-works.md"
PRODUCT = "rackwright"
PACKAGES = {PRODUCT: ROOT, "rackwright_engines": ROOT / "packages" / "engines"}
"""Where each package of the floor plan lies."""
CONTRACT = "Each layer imports only those below it"
PROOF = "concerns/endpoint/proof"
ROWS = ("chat.py", "container_rows.py", "full.py", "speed.py", "drafts.py", "sampling.py", "engine_steps.py")

Edges = Mapping[int, frozenset[int]]
"""Floors that a floor imports, by its number; the top one is 0."""


def main() -> None:
    """Write the page."""
    PAGE.write_text(drawn(PAGE.read_text()))
    print(PAGE)


def drawn(text: str) -> str:
    """Return the page with both pictures as they must be. Raises ValueError when it lacks a picture's markers."""
    for name, lines in (("floor plan", floor_plan()), ("one run", one_run())):
        begin, end = f"<!-- {name}: made by scripts/drawings.py -->\n", f"<!-- end of {name} -->"
        before, found, remaining = text.partition(begin)
        _, closed, after = remaining.partition(end)
        if not (found and closed):
            raise ValueError(f"{PAGE.name} has no markers for the picture {name!r}")
        picture = "\n".join(["```mermaid", *lines, "```", ""])
        text = f"{before}{begin}{picture}{end}{after}"
    return text


# -- the floor plan


def floor_plan() -> Iterator[str]:
    """One box a floor, and an arrow for what it leans on; arrows that others imply are left out."""
    floors = [re.split(r"\s*[|:]\s*", layer) for layer in contract()["layers"]]
    excused = exceptions(floors)
    edges = imports(floors, excused)
    yield "flowchart TD"
    yield from (f'  floor{number}["{_labels(floor)}"]' for number, floor in enumerate(floors))
    for upper in edges:
        yield from (f"  floor{upper} --> floor{lower}" for lower in sorted(direct(edges, upper)))
    yield from (f"  floor{upper} -. exception .-> floor{lower}" for upper, lower in sorted(excused))


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
    return f"{folders.pop()}/" if len(floor) > 1 and len(folders) == 1 else ", ".join(map(_label, floor))


# -- one run


def one_run() -> Iterator[str]:
    """From the command to the proof."""
    yield "flowchart TD"
    yield '  command(["pyinfra inventory/b200.py deploy.py"]) --> settings'
    yield '  settings["settings: group_vars and host_vars, checked before any connection"] --> declare'
    yield '  declare["deploy.py once offline: which steps are managed"] --> read'
    yield '  read["one command a host: what is there"] --> ' + steps()[0][0]
    yield '  subgraph deploy["deploy.py, on every host: compare, change what differs, read again"]'
    for number, (name, comment) in enumerate(steps()):
        arrow = f" --> {steps()[number + 1][0]}" if number + 1 < len(steps()) else ""
        yield f'    {name}["{name}: {comment}"]{arrow}'
    yield "  end"
    yield "  endpoint -. the host's own job .-> switch"
    yield '  subgraph job["the switch: it ends on its own, even when the control machine is gone"]'
    yield '    switch["stop the old release, start the new one"] --> ready["ready: /health answers"]'
    yield f'    ready --> proof["proof:<br/>{"<br/>".join(questions())}"]'
    yield '    proof -- every answer is right --> commit["commit: the release counts as proven"]'
    yield '    proof -- one is wrong --> back["roll back: the last proven release serves, and is asked too"]'
    yield "  end"


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
