"""The report of `dcgmi diag -j`, of DCGM 3 and 4: the result of each test on each GPU. Pure.

DCGM publishes no schema; the keys are those of its source (nvvs/include/NvvsJsonStrings.h, dcgmi/Diag.cpp of 3.3 and
4.5). dcgmi's exit status alone proves little: persistence mode that is off ends it with 226, as broken memory does. So
each message is judged by the severity and the category that DCGM gives it (dcgmlib/src/dcgm_errors.c).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from rackwright.messages import ReadingError, counted, printable

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
"""Name of the report since DCGM 4, and before."""
MOST = 4096
"""Most results that are kept: 16 GPUs and 20 tests make 320."""
LONGEST = 400
"""Characters of a message that are kept."""

Verdict = Literal["fail", "warn", "pass", "skip"]
RANK: tuple[Verdict, ...] = ("fail", "warn", "pass", "skip")
"""From the worst to the one that says least."""


class DcgmSeverity(IntEnum):
    """DCGM's own severity of an error."""

    NONE = 0
    MONITOR = 1
    """The GPU can work, and should be watched."""
    ISOLATE = 2
    UNKNOWN = 3
    TRIAGE = 4
    CONFIG = 5
    """A setting of the host, such as persistence mode."""
    RESET = 6


HARMLESS = frozenset({DcgmSeverity.NONE, DcgmSeverity.MONITOR, DcgmSeverity.CONFIG})
"""Severities that blame no GPU."""
SOFTWARE = frozenset({3, 4, 8, 16})
"""Categories of errors of settings, of libraries, of other software, and of DCGM itself."""


@dataclass(frozen=True)
class Remark:
    """One message of a test. None: DCGM gave no number."""

    text: str
    severity: int | None = None
    category: int | None = None
    error: int | None = None
    """DCGM's number of the error, as in its documentation: DCGM_FR_FAULTY_MEMORY is 52."""

    @property
    def blames_hardware(self) -> bool:
        """True if a GPU or one of its links is broken by it; one without a severity counts as that."""
        if self.severity in HARMLESS:
            return False
        return self.severity == DcgmSeverity.ISOLATE or self.category not in SOFTWARE


@dataclass(frozen=True)
class EntityResult:
    """The result of one test on one GPU, or on the host. `status` is DCGM's own, in small letters."""

    test: str
    entity: str
    """`GPU 3`, `CPU 0`; empty for the host."""
    status: str
    remarks: tuple[Remark, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the verdict: a failed test without a message is a failure, one about settings a warning."""
        blamed = any(one.blames_hardware for one in self.remarks)
        if self.status == "fail":
            return "fail" if blamed or not self.remarks else "warn"
        if self.status == "pass":
            return "warn" if blamed else "pass"
        return "skip" if self.status in ("skip", "not run") else "warn"

    @property
    def text(self) -> str:
        """Return its messages, the worst first."""
        ordered = sorted(self.remarks, key=lambda remark: not remark.blames_hardware)
        return "; ".join(dict.fromkeys(one.text for one in ordered)) or ("" if self.verdict == "pass" else self.status)


@dataclass(frozen=True)
class Row:
    """Results of one test that say the same, of several GPUs."""

    verdict: Verdict
    where: str
    """`GPU 0, 1, 2`; `the host`."""
    test: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.test}: {self.text}"


@dataclass(frozen=True)
class Report:
    """All results of one run of dcgmi."""

    version: str = ""
    driver: str = ""
    results: tuple[EntityResult, ...] = ()
    error: str = ""
    """The reason for missing results."""

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict. A pass is one that some test has given: without results it is `skip`."""
        found = {one.verdict for one in self.results}
        return next((one for one in RANK if one in found), "skip")

    def rows(self, *verdicts: Verdict) -> list[Row]:
        """Return the results of these verdicts, the worst first, those alike in one row."""
        lots: dict[tuple[Verdict, str, object], list[EntityResult]] = {}
        for one in self.results:
            numbers = tuple(remark.error for remark in one.remarks if remark.error is not None)
            lots.setdefault((one.verdict, one.test, numbers or one.text), []).append(one)
        ordered = sorted(lots.items(), key=lambda lot: RANK.index(lot[0][0]))
        return [
            Row(verdict, _where(one.entity for one in alike), test, alike[0].text)
            for (verdict, test, _), alike in ordered
            if verdict in verdicts
        ]

    def summary(self) -> str:
        """Return how much was tested: `6 tests, 2 skipped`."""
        tests = {one.test for one in self.results}
        skipped = {one.test for one in self.results if one.verdict == "skip"} - {
            one.test for one in self.results if one.verdict != "skip"
        }
        return counted(len(tests), "test") + (f", {len(skipped)} skipped" if skipped else "")


def _where(entities: Iterable[str]) -> str:
    """Return entities as a list: `GPU 0, 1, CPU 0`."""
    numbers: dict[str, list[str]] = {}
    for entity in dict.fromkeys(entities):
        kind, _, number = entity.partition(" ")
        numbers.setdefault(kind, []).append(number)
    return ", ".join(f"{kind} {', '.join(found)}".strip() if kind else "the host" for kind, found in numbers.items())


def parse_report(text: str) -> Report:
    """Parse what dcgmi printed. Raises ReadingError when it is not a report."""
    body, document = _body(text)
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else document
    version = _text(body.get("version") or meta.get("version"))
    driver = _text(meta.get("Driver Version Detected"))
    if error := body.get("runtime_error"):
        return Report(version, driver, error=_text(error))
    results = tuple(one for _, one in zip(range(MOST), _results(body), strict=False))
    return Report(version, driver, results, "" if results else "dcgmi reported no test")


def _body(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    start, end = text.find("{"), text.rfind("}")
    try:
        document = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        document = None
    body = next((document[name] for name in ROOTS if name in document), None) if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(body, dict):
        output = printable(" ".join(text.split()))[:LONGEST]
        raise ReadingError(f"dcgmi did not print a report: {output or 'it printed nothing'}", code="RW2607")
    return body, document


def _results(body: Mapping[str, Any]) -> Iterator[EntityResult]:
    for category in _dicts(body.get("test_categories")):
        for test in _dicts(category.get("tests")):
            name = _text(test.get("name")) or "a test without a name"
            found = [_result(name, one) for one in _dicts(test.get("results"))]
            yield from found
            summary = test.get("test_summary")
            if isinstance(summary, dict) and not any(one.verdict == "fail" for one in found):
                yield from _of_summary(name, summary, found)


def _of_summary(name: str, summary: Mapping[str, Any], found: list[EntityResult]) -> Iterator[EntityResult]:
    """Yield a test's own result where it says more than those of its GPUs: what is wrong is the host's."""
    repeated = {remark for one in found for remark in one.remarks}
    whole = _result(name, summary)
    more = tuple(remark for remark in whole.remarks if remark not in repeated)
    if not found or (more and whole.status == "fail"):
        yield EntityResult(name, "", whole.status, more)


def _result(name: str, values: Mapping[str, Any]) -> EntityResult:
    remarks = values.get("warnings")
    found = [_remark(one) for one in (remarks if isinstance(remarks, list) else [remarks]) if one]
    return EntityResult(name, _entity(values), _text(values.get("status")).lower(), tuple(found))


def _entity(values: Mapping[str, Any]) -> str:
    """Return the entity of a result: DCGM 4 says its kind, 3 has a GPU's number alone."""
    if "entity_id" in values:
        return _text(f"{values.get('entity_group') or 'GPU'} {values['entity_id']}")
    number = next((values[key] for key in ("gpu_id", "gpu_ids", "cpu_id") if key in values), None)
    if number is None:
        return ""
    return _text(f"{'CPU' if 'cpu_id' in values else 'GPU'} {number}")


def _remark(value: object) -> Remark:
    """Return a message. The level 1 tests of DCGM 3 have its text under `warnings`, like the list that it is in."""
    if not isinstance(value, dict):
        return Remark(_text(value))
    text = _text(value.get("warning") or value.get("warnings"))
    numbers = (value.get(f"error_{key}") for key in ("severity", "category", "id"))
    return Remark(text, *(one if isinstance(one, int) and not isinstance(one, bool) else None for one in numbers))


def _dicts(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def _text(value: object) -> str:
    return "" if value is None else printable(" ".join(str(value).split()))[:LONGEST]
