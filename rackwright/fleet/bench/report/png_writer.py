"""Draws pictures as PNG with Pillow. Runs in aiperf's environment, which has it; imports nothing of Rackwright.

Standard input is JSON: `{"scale": 2, "pictures": [{"path": ..., "width": ..., "height": ..., "shapes": [...]}]}`, the
shapes as report/shapes.py has them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from PIL import Image, ImageDraw, ImageFont

FINER = 2
"""Drawn so many times larger than wanted, and made smaller then: Pillow's own lines have stairs."""
SIZE = 12
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def main() -> None:
    """Write each picture to its path."""
    asked = json.load(sys.stdin)
    for picture in asked["pictures"]:
        draw(picture, asked["scale"]).save(picture["path"], "PNG", optimize=True)


def draw(picture: dict[str, Any], scale: int) -> Image.Image:
    """One picture, `scale` dots to a pixel of the screen."""
    times = scale * FINER
    size = round(picture["width"] * scale), round(picture["height"] * scale)
    image = Image.new("RGB", (size[0] * FINER, size[1] * FINER), "#ffffff")
    canvas = ImageDraw.Draw(image)
    font = ImageFont.load_default(SIZE * times)
    for shape in picture["shapes"]:
        put(canvas, shape, times, font)
    return image.resize(size, Image.Resampling.LANCZOS)


def put(canvas: ImageDraw.ImageDraw, shape: dict[str, Any], times: int, font: Any) -> None:
    """Draw one shape."""
    colour = shape["colour"]
    if shape["kind"] == "line":
        canvas.line([(x * times, y * times) for x, y in shape["points"]], fill=colour, width=times, joint="curve")
        return
    x, y = shape["x"] * times, shape["y"] * times
    match shape["kind"]:
        case "box":
            canvas.rectangle((x, y, x + shape["width"] * times, y + shape["height"] * times), fill=colour)
        case "dot":
            canvas.circle((x, y), shape["radius"] * times, fill=colour)
        case "words":
            bold = times // 4 if shape["bold"] else 0
            canvas.text((x, y), shape["text"], colour, font, ANCHORS[shape["anchor"]], stroke_width=bold)


if __name__ == "__main__":
    main()
