"""An image that is, by its name, one of another engine than `engine_kind` says, or leaves at TensorRT-LLM."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright.engines.finding import Finding
from rackwright.engines.options.inexact import WAY_OUT
from rackwright.settings.model import EndpointSettings

NAMES = {
    "tensorrt-llm": ("TensorRT-LLM", re.compile(r"tensorrt[-_]?llm|trt-?llm")),
    "vllm": ("vLLM", re.compile(r"vllm")),
    "sglang": ("SGLang", re.compile(r"sglang|\bsgl\b")),
}
"""What people call each engine, and the words by which images of it are named."""


def check_engine_of_image(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Refused where the image's name has the words of one other engine, and none of this one."""
    named = [kind for kind, (_, words) in NAMES.items() if words.search(image_path(endpoint.image))]
    if len(named) == 1 and named[0] != endpoint.engine_kind:
        own, other = NAMES[endpoint.engine_kind][0], NAMES[named[0]][0]
        text = f"by its name {endpoint.image} is an image of {other}, and engine_kind is {own}'s: set it to {named[0]}"
        yield Finding(("image",), f"{text}; {WAY_OUT}", code="RW0326")


def image_path(image: str) -> str:
    """Return its name without the registry, which may be called like anything, and without the tag."""
    first, slash, rest = image.lower().rpartition(":")[0].partition("/")
    return rest if slash and re.search(r"[.:]|^localhost$", first) else f"{first}{slash}{rest}"
