"""One bench: the guards, then every cell of the suite; each is printed and written down as soon as it is there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rackwright.concerns.endpoint.full_gate import drafting_of
from rackwright.messages import RackwrightError, counted
from rackwright.remote.errors import StepFailedError
from rackwright_bench.aiperf.environment import environment_folder, version
from rackwright_bench.aiperf.tokenizer import in_cache
from rackwright_bench.aiperf.words import GRACE, Target
from rackwright_bench.endpoint_on_host import Measuree
from rackwright_bench.figures.figures import Measured
from rackwright_bench.figures.guards import forced, switches
from rackwright_bench.figures.rounds import Limits, over, pooled, round_numbers
from rackwright_bench.measuring import Tool, measure_cell
from rackwright_bench.record import called, note_cell, note_conditions
from rackwright_bench.report.table import acceptance
from rackwright_bench.suites.suite import Cell, Suite, cells

Say = Callable[[str], None]
ONE_ROUND = Limits()


@dataclass(frozen=True)
class BenchPlan:
    """The load to measure: the suite, and the files of each set of requests that is not made."""

    suite: Suite
    name: str
    prompts: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    """By set, a file for each round."""
    tokenizer: str = ""
    """A folder of the user's; empty: the host's own."""

    @property
    def cells(self) -> list[Cell]:
        """All of its cells."""
        return list(cells(self.suite))

    def prompts_of(self, cell: Cell, number: int) -> Path | None:
        """Return the file of a cell's requests in a round; None where aiperf makes them."""
        found = self.prompts.get(cell.dataset)
        return found[number - 1] if found else None

    @property
    def suite_settings(self) -> dict[str, Any]:
        """The suite as a record has it."""
        return self.suite.model_dump(mode="json", exclude_none=True)

    @property
    def seconds(self) -> float:
        """Return the longest time of all of its cells, once each."""
        return len(self.cells) * (self.suite.timeout + GRACE)

    def in_words(self) -> str:
        """Return its size in words."""
        sent = sum(cell.pattern.requests + self.suite.warmup for cell in self.cells)
        return f"{counted(len(self.cells), 'cell')} of suite {self.name}, {counted(sent, 'request')}"


Found = dict[str, list[Measured]]
"""The rounds of each cell, by the cell's name."""


def measure(
    plan: BenchPlan, measuree: Measuree, python: Path, record: Path, say: Say, limits: Limits = ONE_ROUND
) -> dict[str, Measured]:
    """Measure all cells, in rounds; returns those of which something came out.

    Raises RackwrightError before the first one.
    """
    tool = prepared(plan, measuree, python, record)
    found: Found = {}
    for number in round_numbers(limits, lambda: _widest(found)):
        measure_round(tool, plan, measuree, record, say, number, found)
    return {name: pooled(rounds) for name, rounds in found.items()}


def _widest(found: Found) -> float:
    """Return the width of the widest interval of a cell's tokens a second."""
    return max((over([one.output_rate for one in rounds]).width for rounds in found.values()), default=math.inf)


def measure_round(
    tool: Tool,
    plan: BenchPlan,
    measuree: Measuree,
    record: Path,
    say: Say,
    number: int,
    found: Found,
    variant: str = "",
) -> None:
    """Measure every cell once; each is printed and written down as soon as it is there.

    Every round has prompts of its own, the same ones for each variant: one that came before is in the prefix cache.
    """
    suite = plan.suite.model_copy(update={"seed": plan.suite.seed + number - 1})
    round_tool = replace(tool, folder=tool.folder / f"{variant or 'round'}-{number}")
    for cell in plan.cells:
        name = called(cell.name, variant)
        try:
            measured = measure_cell(round_tool, measuree, suite, cell, plan.prompts_of(cell, number))
        except StepFailedError:
            raise
        except RackwrightError as error:
            note_cell(record, measuree.host, name, str(error), None, number)
            say(f"{name}: {error}")
            continue
        found.setdefault(cell.name, []).append(measured)
        note_cell(record, measuree.host, name, sentence(measured), measured, number)
        say(f"{name}: {sentence(measured)}")


def refuse_forced(what: str, environment: Mapping[str, str]) -> None:
    """Raise RackwrightError for an environment in which the engine makes its figures up. what: whose it is."""
    if why := forced(environment):
        raise RackwrightError(
            f"{what}: {why}; nothing was measured; next: take it out of `environment`, then the same command",
            code="RW1514",
        )


def prepared(plan: BenchPlan, measuree: Measuree, python: Path, record: Path, variant: str = "") -> Tool:
    """Everything that can refuse the run, asked before the first request. variant: of several that are compared."""
    if not variant:
        measuree.refuse_while_written()
    url, serving = measuree.url(), measuree.serving()
    refuse_forced(f"{measuree.host} {measuree.name}", serving.environment)
    vocabularies = environment_folder().parent / "vocabularies"
    given_tokenizer = plan.tokenizer and in_cache(Path(plan.tokenizer), vocabularies)
    tokenizer = given_tokenizer or measuree.tokenizer(serving, vocabularies)
    gpus = measuree.gpu_names()
    note_conditions(
        record,
        variant=variant or None,
        host=measuree.host,
        by="ssh" if measuree.one.entry.settings.direct_is_closed else None,
        endpoint=measuree.name,
        model=measuree.model,
        repository=measuree.repository,
        release=serving.release,
        image=serving.image,
        engine=measuree.endpoint.engine_kind,
        driver=measuree.driver(),
        switches=switches(measuree.endpoint),
        drafting=drafting_of(measuree.endpoint),
        gpus=gpus,
        gpu_count=measuree.gpu_count(gpus),
        suite=plan.name,
        settings=plan.suite_settings,
        aiperf=version(),
    )
    folder = record.with_suffix("")
    folder.mkdir(mode=0o700, exist_ok=True)
    return Tool(python, Target(url, measuree.model, tokenizer), vocabularies, folder, measuree.key)


def sentence(measured: Measured) -> str:
    """Return a cell in one line: errors first."""
    if measured.failed or not measured.requests:
        requests = len(measured.requests) + measured.failed
        return (
            f"{measured.failed} of {counted(requests, 'request')} failed: {'; '.join(measured.errors) or 'no answer'}"
        )
    rates = f"{measured.request_rate:.2f} requests/s, {measured.output_rate:.1f} tokens/s"
    latency = f"TTFT p50 {measured.at('ttft', 50):.4g} ms, p99 {measured.at('ttft', 99):.4g} ms"
    return "; ".join([rates, latency, acceptance(measured.drafting), *measured.marks])
