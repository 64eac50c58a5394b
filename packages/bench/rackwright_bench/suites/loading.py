"""Reads a suite: a built-in one by its name, or a file; every problem at once, with file, line and key."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from rackwright.loading.wording import explain, path_of
from rackwright.loading.yaml_file import Document, parse
from rackwright.messages import SettingsError
from rackwright.settings.origin import origin_of
from rackwright_bench.suites.suite import Suite
from rackwright_engines.key_path import dotted
from rackwright_engines.nearest import nearest

OWN = files("rackwright_bench") / "data" / "suites"
ENDS = (".yml", ".yaml")


class InvalidSuiteError(SettingsError):
    """Everything that is wrong with a suite's file."""

    code = "RW1501"


def own_suites() -> list[str]:
    """Names of the suites that come with Rackwright."""
    return sorted(Path(file.name).stem for file in OWN.iterdir())


def suite_text(name: str) -> str:
    """Return the text of a built-in suite, or of a file. Raises SettingsError when there is neither."""
    if name in own_suites():
        return (OWN / f"{name}.yaml").read_text()
    try:
        return Path(name).read_text()
    except (OSError, ValueError) as error:
        hint = "" if name.endswith(ENDS) else nearest(name, own_suites())
        raise SettingsError(
            f"--suite {name}: no shipped suite ({', '.join(own_suites())}){hint}, and no file: {error}; nothing was "
            "measured",
            code="RW1502",
        ) from error


def load_suite(name: str) -> Suite:
    """Return the suite of that name or file. Raises SettingsError."""
    return suite_of(suite_text(name), name)


def suite_of(text: str, file: str) -> Suite:
    """Return the suite that a text is. file: its name for messages. Raises InvalidSuiteError with every problem."""
    document = parse(text, file)
    problems = [f"{one.where}: {one.text}" for one in document.problems]
    try:
        if not problems:
            return Suite.model_validate(document.values)
    except ValidationError as error:
        problems = _problem_lines(error, document, file)
    raise InvalidSuiteError(
        "\n".join(["the suite is not valid, nothing was measured:", *problems, "fix these, then again"])
    )


def _problem_lines(error: ValidationError, document: Document, file: str) -> list[str]:
    """Return a line a problem, in the order of the file."""
    found = []
    for detail in error.errors():
        inner, outer = path_of(detail), tuple(part for part in detail["loc"] if part != "[key]")
        path = inner if inner[: len(outer)] == outer else (*outer, *inner)
        where = origin_of(document.origins, path)
        found.append(
            (where.line_number if where else 0, f"  {where or file}: {dotted(path)}: {explain(Suite, detail)}")
        )
    return [text for _, text in sorted(found)]
