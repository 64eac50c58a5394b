"""Hold docstrings, names and sentences against the word lists in this folder; what is left is counted in a baseline.

python -m scripts.words.check            print what is new beside the baseline, and exit with 1
python -m scripts.words.check --shrink   write the baseline down to what is left; never up
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.words.sentences import asserted_in

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BASELINE = HERE / "baseline.txt"
BIN = Path(sys.executable).parent
READ = re.compile(r"\.(py|md|sh|yaml|j2)$|(^|/)Makefile$")
NOT_READ = re.compile(
    r"^(scripts/words/|tests/(fixtures/|texts\.py|unit/test_(words|public_names)\.py)|packages/engines/rackwright_engines/data/|CHANGELOG"
    r"|docs/reference/(failures|operations|settings))"
)
"""The word lists, other programs' output, the product's own texts, generated pages, and what former versions said."""
PACKAGES = tuple(f"packages/{name}/rackwright_{name}/" for name in ("bench", "engines", "lab"))
PUBLIC = ("rackwright/", *PACKAGES, "bench/", "scripts/", "tasks/")
"""Where public functions have docstrings; a test's name is its docstring."""
MISSING = re.compile(r"D10\d")


class Finding(NamedTuple):
    """A place that does not speak as the house speaks. `line` counts from 1."""

    rule: str
    path: str
    line: int
    text: str


def pairs(name: str) -> dict[str, str]:
    """Map what is found to what is written instead, from one list of this folder."""
    rows = [line for line in (HERE / name).read_text().splitlines() if line and not line.startswith("#")]
    return dict(row.split("\t") for row in rows)


def read_files() -> list[str]:
    """Paths below the checkout of every text that people read, new ones too."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in listed if READ.search(path) and not NOT_READ.search(path) and (ROOT / path).is_file()]


def docstrings() -> Iterator[Finding]:
    """Find what ruff's D finds by Google's convention, and D401, imperative, which that convention leaves out."""
    words = ["check", "--select", "D,D401", "--ignore", "D105,D107", "--exit-zero", "--output-format", "json"]
    config = ["--config", 'lint.pydocstyle.convention="google"']
    out = subprocess.run([BIN / "ruff", *words, *config, "."], cwd=ROOT, capture_output=True, text=True, check=True)
    for one in json.loads(out.stdout):
        path = str(Path(one["filename"]).relative_to(ROOT))
        if path.startswith(PUBLIC) or not MISSING.match(one["code"]):
            yield Finding(one["code"], path, one["location"]["row"], one["message"])


def spelling(paths: list[str]) -> Iterator[Finding]:
    """Find what codespell finds, by its own dictionary and by the house's."""
    dictionary = HERE / "dictionary.txt"
    ours = {row.partition("->")[0] for row in dictionary.read_text().split()}
    words = ["--dictionary", "-", "--dictionary", dictionary, "--ignore-words", HERE / "ignore.txt"]
    out = subprocess.run([BIN / "codespell", *words, *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    row = re.compile(r"(?:\./)?(.+?):(\d+): (\S+) ==> (.*)")
    for found in filter(None, map(row.fullmatch, out.stdout.splitlines())):
        rule = "word" if found[3].lower() in ours else "spelling"
        yield Finding(rule, found[1], int(found[2]), f"{found[3]}: {found[4]}")


def phrases(paths: list[str]) -> Iterator[Finding]:
    """Each phrase of the list, wherever it is written."""
    better = pairs("phrases.txt")
    # One expression of all is read in a fifteenth of the time of one after the other.
    every = re.compile("|".join(f"(?:{pattern})" for pattern in better))
    for path in paths:
        text = (ROOT / path).read_text()
        for hit in every.finditer(text):
            instead = next(words for pattern, words in better.items() if re.fullmatch(pattern, hit[0]))
            yield Finding("phrase", path, text.count("\n", 0, hit.start()) + 1, f"{hit[0]}: {instead}")


def names(paths: list[str]) -> Iterator[Finding]:
    """Arguments, locals and functions that are called as a word of the list."""
    better = pairs("names.txt")
    for path in paths:
        if path.endswith(".py"):
            for name, number in _bound(ast.parse((ROOT / path).read_text())):
                if name in better:
                    yield Finding("name", path, number, f"{name}: {better[name]}")


def _bound(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name, node.lineno


def quoted(paths: list[str]) -> Iterator[Finding]:
    """Every sentence that a test asserts."""
    for path, one in asserted_in(ROOT, paths):
        yield Finding("quoted", path, one.line, f"{one.text!r}: a code and its fields, or tests/texts.py")


def findings() -> list[Finding]:
    """Everything that is found, in the order of rules and paths."""
    paths = read_files()
    formats = re.compile("|".join(f"(?:{pattern})" for pattern in pairs("formats.txt")))
    texts = {path: (ROOT / path).read_text().split("\n") for path in paths}
    listed = {one for one in (*spelling(paths), *phrases(paths), *names(paths)) if not is_format(one, formats, texts)}
    return sorted({*docstrings(), *listed, *quoted(paths)})


def is_format(one: Finding, formats: re.Pattern[str], texts: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a word is on its line only as a part of a format, or as another program's."""
    word = one.text.partition(":")[0]
    return word.lower() not in formats.sub("", texts[one.path][one.line - 1]).lower()


def counted(found: list[Finding]) -> Counter[tuple[str, str]]:
    """How many findings each rule has in each file."""
    return Counter((one.rule, one.path) for one in found)


def baseline() -> Counter[tuple[str, str]]:
    """Return the counts that are written down; of a file that two branches have changed, the lower."""
    known: Counter[tuple[str, str]] = Counter()
    for row in BASELINE.read_text().splitlines():
        rule, number, path = row.split(maxsplit=2)
        known[rule, path] = min(int(number), known.get((rule, path), int(number)))
    return known


def grown(now: Counter[tuple[str, str]], known: Counter[tuple[str, str]]) -> set[str]:
    """Rules that find more than is written down in all files together: a moved file takes its findings along."""
    totals = Counter[str]()
    for (rule, _), number in now.items():
        totals[rule] += number
    for (rule, _), number in known.items():
        totals[rule] -= number
    return {rule for rule, number in totals.items() if number > 0}


def new(found: list[Finding], known: Counter[tuple[str, str]]) -> list[Finding]:
    """Return findings of files that have more of a rule than is written down."""
    now = counted(found)
    return [one for one in found if now[one.rule, one.path] > known[one.rule, one.path]]


def write(now: Counter[tuple[str, str]]) -> None:
    """Write the baseline, a line a rule and file."""
    BASELINE.write_text("".join(f"{rule} {number} {path}\n" for (rule, path), number in sorted(now.items())))


def main(words: list[str]) -> int:
    """Check, or shrink the baseline; 1 where something is new or the baseline is too high."""
    found, known = findings(), baseline()
    now, fresh = counted(found), new(found, known)
    if "--shrink" in words and not grown(now, known):
        write(now)
        return 0
    for one in fresh:
        print(f"{one.path}:{one.line}: {one.rule}: {one.text}")
    if fresh:
        print("more than scripts/words/baseline.txt has; next: write it as the right side says")
        print("or, where files were only moved: python -m scripts.words.check --shrink")
    elif now != known:
        print("fewer than scripts/words/baseline.txt has; next: python -m scripts.words.check --shrink")
    return int(now != known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
