"""One bench: the guards, then every cell of the suite; each is printed and written down as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.errors import RackwrightError
from rackwright.fleet.bench.aiperf.environment import environment_folder, version
from rackwright.fleet.bench.aiperf.words import Target
from rackwright.fleet.bench.figures.figures import Measured
from rackwright.fleet.bench.figures.guards import forced, switches
from rackwright.fleet.bench.looking import Measuree
from rackwright.fleet.bench.measuring import Tool, measure_cell
from rackwright.fleet.bench.record import note_cell, note_conditions
from rackwright.fleet.bench.report.table import acceptance
from rackwright.fleet.bench.suites.suite import Cell, Suite, cells
from rackwright.printable import counted

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is to be measured: the suite, and the file of each set of requests that is not made."""

    suite: Suite
    name: str
    prompts: Mapping[str, Path] = field(default_factory=dict)
    tokenizer: str = ""
    """A folder of the user's; empty: the host's own."""

    @property
    def cells(self) -> list[Cell]:
        """All of its cells."""
        return list(cells(self.suite))

    def in_words(self) -> str:
        """How much it is."""
        sent = sum(cell.pattern.requests + self.suite.warmup for cell in self.cells)
        return f"{counted(len(self.cells), 'cell')} of suite {self.name}, {counted(sent, 'request')}"


def measure(plan: Plan, measuree: Measuree, python: Path, record: Path, say: Say) -> dict[str, Measured]:
    """Measure all cells; returns those of which something came out. Raises RackwrightError before the first one."""
    tool = _prepared(plan, measuree, python, record)
    found: dict[str, Measured] = {}
    for cell in plan.cells:
        try:
            measured = measure_cell(tool, measuree, plan.suite, cell, plan.prompts.get(cell.dataset))
        except RackwrightError as error:
            note_cell(record, measuree.host, cell.name, str(error), None)
            say(f"{cell.name}: {error}")
            continue
        found[cell.name] = measured
        note_cell(record, measuree.host, cell.name, sentence(measured), measured)
        say(f"{cell.name}: {sentence(measured)}")
    return found


def _prepared(plan: Plan, measuree: Measuree, python: Path, record: Path) -> Tool:
    """Everything that can refuse the run, asked before the first request."""
    url, serving = measuree.url(), measuree.serving()
    if why := forced(serving.environment):
        raise RackwrightError(
            f"{measuree.host} {measuree.name}: {why}; nothing was measured; next: take it out of group_vars",
            code="RW1514",
        )
    vocabularies = environment_folder().parent / "vocabularies"
    tokenizer = plan.tokenizer or measuree.tokenizer(serving, vocabularies)
    note_conditions(
        record,
        host=measuree.host,
        endpoint=measuree.name,
        model=measuree.model,
        release=serving.release,
        image=serving.image,
        engine=measuree.endpoint.engine_kind,
        switches=switches(measuree.endpoint),
        gpus=measuree.gpu_names(),
        suite=plan.name,
        settings=plan.suite.model_dump(mode="json", exclude_none=True),
        aiperf=version(),
    )
    folder = record.with_suffix("")
    folder.mkdir(mode=0o700, exist_ok=True)
    return Tool(python, Target(url, measuree.model, tokenizer), vocabularies, folder)


def sentence(measured: Measured) -> str:
    """A cell in one line: errors first."""
    if measured.failed or not measured.requests:
        asked = len(measured.requests) + measured.failed
        return f"{measured.failed} of {counted(asked, 'request')} failed: {'; '.join(measured.errors) or 'no answer'}"
    rates = f"{measured.request_rate:.2f} requests/s, {measured.output_rate:.1f} tokens/s"
    latency = f"TTFT p50 {measured.at('ttft', 50):.4g} ms, p99 {measured.at('ttft', 99):.4g} ms"
    return "; ".join([rates, latency, acceptance(measured.drafting), *measured.marks])
