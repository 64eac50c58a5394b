"""What an endpoint's image is besides its version: the engine's own or somebody's build, and who can ask it."""

from __future__ import annotations

from rackwright.engines.fit.other_engine import image_path
from rackwright.engines.options.inexact import ImageFacts
from rackwright.settings.model import EndpointSettings
from rackwright.settings.sections import Hardware

OWN = {
    "tensorrt-llm": ("nvidia/tensorrt-llm/release", "nvidia/tensorrt-llm/devel"),
    "vllm": ("vllm/vllm-openai",),
    "sglang": ("lmsysorg/sglang",),
}
"""The images that each engine's project publishes; a mirror has the same path, mostly below one of its own."""


def image_facts(endpoint: EndpointSettings, hardware: Hardware) -> ImageFacts:
    """Return what is known of the image of an endpoint on such hardware."""
    changed = "" if _is_own(endpoint) else endpoint.image
    return ImageFacts(changed, _backend(endpoint.arguments), hardware.unified_memory)


def _is_own(endpoint: EndpointSettings) -> bool:
    path = f"/{image_path(endpoint.image)}"
    return any(path.endswith(f"/{own}") or path == f"/{own.rpartition('/')[2]}" for own in OWN[endpoint.engine_kind])


def _backend(words: tuple[str, ...]) -> str:
    """The value of `--backend VALUE` or `--backend=VALUE`."""
    for word, follows in zip(words, (*words[1:], ""), strict=bool(words)):
        name, is_, value = word.partition("=")
        if name == "--backend":
            return value if is_ else follows
    return ""
