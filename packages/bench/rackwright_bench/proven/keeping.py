"""Keeps what a comparison or a tune proved in the site's file of presets, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from rackwright.loading.host import InventoryHost
from rackwright.profiles.presets import PRESETS_FILE, Preset, keep_presets
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_bench.figures.verdict import COSTS, shares
from rackwright_bench.proven.making import Proof, names_of_site, preset_of
from rackwright_bench.proven.winners import Rounds, Winner, winners
from rackwright_bench.record import read_bench
from rackwright_bench.running import Say
from rackwright_bench.variants.comparing import Comparison
from rackwright_bench.variants.trials import conclusion, share_in_words
from rackwright_bench.variants.tuning import Tuning, whole_rounds


def keep_compared(work: Comparison, name: str, root: Path, say: Say) -> None:
    """Keep each variant that wins a cell of a comparison; says where nothing is proven. name: of the endpoint.

    A variant that answers worse than the first one by more than `gate.worse_by` wins nothing.
    """
    concurrency = {cell.name: cell.pattern.concurrency for cell in work.plan.cells}
    worse = work.worse_answers()
    found = {one: work.found.get(one, {}) for one in work.variants if one not in worse}
    for one, why in worse.items():
        say(f"{one} is not kept as a preset: it {why}")
    won = winners(found, concurrency)
    proofs = [Proof(one, _sentence(one, cells), cells) for one, cells in _by_variant(won).items()]
    if not proofs:
        say("no preset is kept: no cell proves a variant; more rounds would tell")
    _keep(work, proofs, name, root, say)


def _by_variant(won: Mapping[str, Winner]) -> dict[str, dict[str, Winner]]:
    found: dict[str, dict[str, Winner]] = {}
    for cell, winner in won.items():
        found.setdefault(winner.variant, {})[cell] = winner
    return found


def _sentence(variant: str, cells: Mapping[str, Winner]) -> str:
    parts = [f"{cell} ({share_in_words(one.ratio)} of {one.against})" for cell, one in cells.items()]
    return f"{variant} has the most tokens a second in {', '.join(parts)}, by 95 % intervals over pairs of rounds"


def keep_tuned(work: Tuning, name: str, root: Path, say: Say) -> None:
    """Keep the winner of a tune, or the settings where they are proven to be the best of it."""
    trials = work.trials
    variant = trials.winner() or (trials.first if trials.stays() else "")
    if not variant:
        say("no preset is kept: nothing is proven")
        return
    bounds = tuple(bound.text for bound in trials.goal.bounds)
    cells = dict(_cells_of(work, variant, whole_rounds(trials)))
    _keep(work, [Proof(variant, conclusion(trials), cells, bounds)], name, root, say)


def _cells_of(work: Tuning, variant: str, found: Rounds) -> Iterator[tuple[str, Winner]]:
    """Yield the cells in which a tune's winner is to be taken: all, but those in which it costs where it need not."""
    trials, concurrency = work.trials, {cell.name: cell.pattern.concurrency for cell in work.plan.cells}
    if variant == trials.first:
        yield from ((cell, Winner(variant)) for cell in concurrency)
        return
    by_cell = {share.cell: share for share in shares(found.get(trials.first, {}), found[variant], concurrency)}
    for cell in concurrency:
        share = by_cell.get(cell)
        if share is None:
            yield cell, Winner(variant)
        elif share.verdict != COSTS or trials.fault(trials.first):
            yield cell, Winner(variant, trials.first, share.ratio)


def _keep(work: Comparison, proofs: list[Proof], name: str, root: Path, say: Say) -> None:
    entry, bench = work.trial.one.entry, read_bench(root, work.record.stem)
    made = [preset_of(bench, proof, _endpoint(work.variants, proof, name), _names(entry)) for proof in proofs]
    presets = dict(filter(None, made))
    if not presets:
        return
    file = entry.settings.paths.presets_file
    keep_presets(root / file, presets)
    for preset, one in presets.items():
        say(f"kept as preset {preset} in {file}; {_how(preset, file)}{_held_back(one)}")


def _endpoint(variants: Mapping[str, HostSettings], proof: Proof, name: str) -> EndpointSettings:
    return variants[proof.variant].all_endpoints[name]


def _names(entry: InventoryHost) -> set[str]:
    return names_of_site([(entry.name, entry.data)])


def _how(preset: str, file: str) -> str:
    inventory = "" if file == PRESETS_FILE else " -i INVENTORY"
    command = f"rackwright advise{inventory} --preset {preset}"
    return f"not deployed; its settings, for group_vars/: {command}"


def _held_back(one: Preset) -> str:
    return f"; private, so not in it: {', '.join(one.left_out)}" if one.left_out else ""
