"""Draws curves and heat maps with matplotlib, as SVG and PNG.

Runs in aiperf's environment and imports nothing of Rackwright.

Standard input is JSON: `{"curves": [...], "grids": [...]}`, as report/curves.py and report/grids.py have them, each
with the `stem` of its files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "savefig.bbox": "tight",
    "svg.fonttype": "none",
    "text.parse_math": False,
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's, which people with any colour vision tell apart."""
NO_FIGURE = "#f3d4d4"
DOTS_PER_INCH = 200
LABEL = 11
"""Height of a point's label, in points of 1/72 inch."""


def main() -> None:
    """Draw each picture into its two files."""
    pictures = json.load(sys.stdin)
    mpl.rcParams.update(SETTINGS)
    for one in pictures["curves"]:
        save(draw_curves(one), one)
    for one in pictures["grids"]:
        save(draw_grid(one), one)


def save(figure: Figure, picture: Mapping[str, Any]) -> None:
    """Write both files; equal figures give equal bytes."""
    mpl.rcParams["svg.hashsalt"] = picture["name"]
    figure.savefig(f"{picture['stem']}.svg", metadata={"Date": None, "Title": picture["title"]})
    figure.savefig(f"{picture['stem']}.png", dpi=DOTS_PER_INCH)


def draw_curves(picture: Mapping[str, Any]) -> Figure:
    """Return latency over throughput, both from zero, with each point's name beside it."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for series, colour in zip(picture["series"], cycle(COLOURS), strict=False):
        axes.scatter(*_ways(series["points"]), color=colour, label=series["dataset"], zorder=2)
        for steps in series["lines"]:
            axes.plot(*_ways(steps), color=colour, linewidth=1)
    axes.set_xlabel("output tokens a second")
    axes.set_ylabel(picture["latency"])
    axes.margins(0.12)
    axes.autoscale_view()
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    if picture["series"]:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    _name_points(axes, picture["series"])
    return figure


def _ways(points: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    return [point["rate"] for point in points], [point["latency"] for point in points]


def _name_points(axes: Axes, series: list[dict[str, Any]]) -> None:
    """Write each point's name to its right, higher where the name of a neighbour stands already."""
    taken: list[tuple[float, float]] = []
    points = [(point, colour) for one, colour in zip(series, cycle(COLOURS), strict=False) for point in one["points"]]
    for point, colour in sorted(points, key=lambda pair: (pair[0]["latency"], pair[0]["rate"])):
        x, y = axes.transData.transform((point["rate"], point["latency"])) * 72 / axes.figure.dpi
        foot = y
        while any(abs(x - across) < 60 and abs(foot - up) < LABEL for across, up in taken):
            foot += LABEL
        taken.append((x, foot))
        spot, label = (point["rate"], point["latency"]), (6, foot - y)
        axes.annotate(point["arrival"], spot, label, textcoords="offset points", color=colour)


def draw_grid(picture: Mapping[str, Any]) -> Figure:
    """Return a table of tinted fields: sets of requests across, patterns of arrival or variants down."""
    across, down = picture["across"], picture["down"]
    figure = Figure(figsize=(2.4 + 1.3 * len(across), 1.1 + 0.34 * len(down)), layout="constrained")
    axes = figure.subplots()
    for row, fields in enumerate(picture["rows"]):
        for column, field in enumerate(fields):
            colour, text = (field["colour"], field["text"]) if field else (NO_FIGURE, "no figure")
            axes.add_patch(Rectangle((column, row), 0.98, 0.94, color=colour))
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center")
    axes.set(xlim=(0, len(across)), ylim=(len(down), 0), title=picture["title"], xlabel=picture["legend"])
    axes.set_xticks([column + 0.5 for column in range(len(across))], across)
    axes.set_yticks([row + 0.5 for row in range(len(down))], down)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
