"""The reading of an image's name: another engine than `engine_kind`, the engine's own image, or somebody's build."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rackwright_engines.finding import Finding
from rackwright_engines.options.inexact import DECIDES, ImageFacts
from rackwright_engines.serving import Serving

NAMES = {
    "tensorrt-llm": ("TensorRT-LLM", re.compile(r"tensorrt[-_]?llm|trt-?llm")),
    "vllm": ("vLLM", re.compile(r"vllm")),
    "sglang": ("SGLang", re.compile(r"sglang|\bsgl\b")),
}
"""Common names of each engine, and the parts of image names that identify it."""


def check_engine_of_image(endpoint: Serving) -> Iterator[Finding]:
    """Refused where the image's name has the words of one other engine, and none of this one."""
    named = [kind for kind, (_, words) in NAMES.items() if words.search(_path(endpoint.image))]
    if len(named) == 1 and named[0] != endpoint.engine_kind:
        this, other = NAMES[endpoint.engine_kind][0], NAMES[named[0]][0]
        text = f"by its name {endpoint.image} is an image of {other}, and engine_kind is {this}'s: set it to {named[0]}"
        yield Finding(("image",), text, code="RW0326", overridable=True)


def _path(image: str) -> str:
    """Return its name without the registry, which may be called like anything, and without the tag."""
    first, slash, path = image.lower().rpartition(":")[0].partition("/")
    return path if slash and re.search(r"[.:]|^localhost$", first) else f"{first}{slash}{path}"


OWN = {
    "tensorrt-llm": ("nvidia/tensorrt-llm/release", "nvidia/tensorrt-llm/devel"),
    "vllm": ("vllm/vllm-openai",),
    "sglang": ("lmsysorg/sglang",),
}
"""The images that each engine's project publishes; a mirror has the same path, mostly below one of its own."""


def image_facts(endpoint: Serving, judge: str = DECIDES) -> ImageFacts:
    """Return what is known of an image. judge: who decides what is not known here, in words."""
    changed = "" if not endpoint.image or _is_own(endpoint) else endpoint.image
    return ImageFacts(changed, _backend(tuple(endpoint.arguments)), judge)


def _is_own(endpoint: Serving) -> bool:
    path = f"/{_path(endpoint.image)}"
    return any(
        path.endswith(f"/{image}") or path == f"/{image.rpartition('/')[2]}" for image in OWN[endpoint.engine_kind]
    )


def _backend(words: tuple[str, ...]) -> str:
    """Return the value of `--backend VALUE` or `--backend=VALUE`."""
    for argument, follows in zip(words, (*words[1:], ""), strict=bool(words)):
        name, is_, value = argument.partition("=")
        if name == "--backend":
            return value if is_ else follows
    return ""
