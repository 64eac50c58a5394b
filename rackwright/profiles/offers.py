"""The presets of a site that are offered for a shape and a load: where they were proven, what differs now. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rackwright.profiles.presets import Preset, PresetCell
from rackwright_engines.advice import FAR, Load, doublings
from rackwright_engines.fit.gpu import gpu_type


@dataclass(frozen=True)
class Shape:
    """A model on so many GPUs, and the engine and driver there. Empty and None: not known, so any."""

    gpu: str
    """Its name, in any of its forms."""
    model: str = ""
    gpus: int | None = None
    engine: str = ""
    version: str = ""
    driver: str = ""


@dataclass(frozen=True)
class Offer:
    """A preset that was proven for such a load, by the cell that is nearest to it."""

    name: str
    preset: Preset
    cell: str
    distance: float
    """Of the load that was measured from the one asked for, in doublings."""
    differences: tuple[str, ...]
    """The differences from when it was measured, in sentences."""

    @property
    def is_paced(self) -> bool:
        """True if the requests of its cell came at a rate, which says less of requests that follow one another."""
        return self.figures.rate is not None

    @property
    def figures(self) -> PresetCell:
        """The figures of its cell."""
        return self.preset.cells[self.cell]

    @property
    def is_far(self) -> bool:
        """True if its figures say little of the load that was asked for."""
        return self.distance > FAR


def offers(presets: Mapping[str, Preset], shape: Shape, load: Load) -> list[Offer]:
    """Return the presets for a shape, the nearest load first, and of equal loads the fastest.

    A preset counts for a load where the measured cell that is nearest to it is one that it was proven in. Those that
    are proven for requests at a rate alone come last: of several rates the nearest lengths count.
    """
    fitting = ((name, one) for name, one in presets.items() if _fits(one, shape, load))
    found = [offer for name, one in fitting if (offer := _offer(name, one, shape, load)) is not None]
    return sorted(found, key=lambda one: (one.is_paced, round(one.distance, 1), -one.figures.output_rate, one.name))


def _fits(preset: Preset, shape: Shape, load: Load) -> bool:
    has_gpus = shape.gpus is None or shape.gpus == preset.gpus
    has_room = preset.context is None or preset.context >= load.length
    return _is_gpu(preset.gpu, shape.gpu) and has_gpus and has_room and is_model(preset.model, shape.model)


def _is_gpu(product: str, wanted: str) -> bool:
    one, other = gpu_type(product), gpu_type(wanted)
    return one == other if one and other else product.casefold() == wanted.casefold()


def is_model(repository: str, wanted: str) -> bool:
    """Return True if a name means a model: its repository, or the last part of it; an empty one means any."""
    names = (repository.casefold(), repository.rpartition("/")[2].casefold())
    return not wanted or wanted.casefold() in names


def _offer(name: str, preset: Preset, shape: Shape, load: Load) -> Offer | None:
    differences = tuple(_differences(preset, shape))
    for is_paced in (False, True):
        cells = {cell: one for cell, one in preset.cells.items() if (one.rate is not None) == is_paced}
        distances = {cell: _distance(one, load) for cell, one in cells.items()}
        cell = min(distances, key=lambda one: (distances[one], not cells[one].proven), default="")
        if cell and cells[cell].proven:
            return Offer(name, preset, cell, distances[cell], differences)
    return None


def _distance(cell: PresetCell, load: Load) -> float:
    output = doublings(cell.output, load.output) if load.output else 0.0
    return doublings(cell.input, load.context) + doublings(cell.concurrency, load.concurrency) + output


def _differences(preset: Preset, shape: Shape) -> Iterator[str]:
    if shape.engine and (shape.engine, shape.version) != (preset.engine, preset.version):
        yield f"the engine is {shape.engine} {shape.version}, and was {preset.engine} {preset.version}"
    if shape.driver and shape.driver != preset.driver:
        yield f"the driver is {shape.driver}, and was {preset.driver or 'not known'}"


# -- in words


def offer_heading(one: Offer) -> str:
    """`gpt-oss-120b-1x-b200-vllm-eagle3: 2643.0 tokens/s, 1.40x (1.31 to 1.50) of baseline`."""
    cell, preset = one.figures, one.preset
    share = f", {cell.share:.2f}x ({cell.low:.2f} to {cell.high:.2f}) of {cell.against}" if _has_share(cell) else ""
    gpus = f"{preset.gpus} GPU{'s' if preset.gpus > 1 else ''}"
    return f"{one.name} ({preset.model}, {gpus}): {cell.output_rate:.1f} tokens/s{share}"


def _has_share(cell: PresetCell) -> bool:
    return None not in (cell.share, cell.low, cell.high)


def _arrival(cell: PresetCell) -> str:
    if cell.rate is None:
        return f"{cell.concurrency} at once"
    return f"{cell.rate:g} request{'s' if cell.rate != 1 else ''} a second, at most {cell.concurrency} at once"


def offer_reasons(one: Offer) -> Iterator[str]:
    """Yield the load and its latencies, what it was measured on, what is another one now, and what it lacks."""
    cell, preset = one.figures, one.preset
    far = "; far from the load asked for" if one.is_far else ""
    load = f"{cell.input} tokens in, {cell.output} out, {_arrival(cell)}"
    yield f"first token after {cell.ttft_p50:.4g} ms, p95 {cell.ttft_p95:.4g} ms at {load}{far}"
    driver = f", driver {preset.driver}" if preset.driver else ""
    hardware = f"{preset.gpus} x {preset.gpu}{driver}"
    run = f"suite {preset.suite}, run {preset.run}"
    yield f"measured {preset.date}: {preset.engine} {preset.version} on {hardware}; {run}"
    if one.is_paced:
        yield "proven for requests at that rate alone, not for as many at once"
    yield f"proof: {preset.proof}"
    if preset.bounds:
        yield f"kept: {', '.join(preset.bounds)}"
    yield from (f"not the same here: {text}; measure again before you rely on it" for text in one.differences)
    if preset.left_out:
        yield f"without private settings that were measured with: {', '.join(preset.left_out)}"
