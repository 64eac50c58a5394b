"""Values that may go out: numbers within bounds, versions, and words of closed lists; nothing else. Pure.

Nothing here looks for secrets: any other text is dropped, whatever it says. A version has three parts at
most, so no address is one; a number has seven digits at most, so no serial number is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.options.commandline import parsed
from rackwright_engines.options.schema import Key

MOST = 9_999_999
VERSION = re.compile(r"\d{1,3}(?:\.\d{1,3}){1,2}(?![\d.])")
ENGINE_VERSION = re.compile(r"\d{1,2}\.\d{1,2}\.\d{1,2}(?:rc\d{1,2})?(?:\.post\d)?")
FLAVOURS = frozenset({"64k", "amd64", "arm64", "aws", "azure", "cloud", "gcp", "generic", "lowlatency", "nvidia", "rt"})
"""Words that a kernel's name may have after its version."""
PRODUCT_WORDS = frozenset(
    name
    for text in (
        "NVIDIA RTX PRO 6000 5000 4500 4000 Blackwell Hopper Ada Generation Max-Q Workstation Server Edition",
        "Graphics Device Tensor Core GPU Grace Superchip DGX HGX NVL NVL4 NVL72 Spark SXM SXM4 SXM5 SXM6 PCIe HBM3",
        "HBM3e A100 H100 H200 H20 GH200 B100 B200 GB200 B300 GB300 GB10 L4 L40 L40S 80GB 96GB 141GB 144G 180GB 192GB",
    )
    for name in text.split()
)
"""Words of nvidia-smi's product names."""
OPTION_WORDS = frozenset({"auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "nvfp4", "eagle", "eagle3", "mtp", "ngram"})
"""Values of options for which the engine's own data list none."""
SET = "set"
"""Stands for an option's value that is neither a number nor such a word, nor one of the engine's own data."""


def whole(value: Any, most: int = MOST) -> int | None:
    """Return a whole number from 0 to `most`."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def number(value: Any) -> float | int | None:
    """Return a finite number, with the figures that matter."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > MOST:
        return None
    return value if isinstance(value, int) else float(f"{value:.6g}")


def switch(value: Any) -> bool | None:
    """Return True or False."""
    return value if isinstance(value, bool) else None


def one_of(value: Any, allowed: Collection[str]) -> str | None:
    """Return a text that is one of a list."""
    return next((str(entry) for entry in allowed if entry == value), None)


def version(text: Any, form: re.Pattern[str] = VERSION) -> str | None:
    """Return the version that a text begins with."""
    found = form.match(text) if isinstance(text, str) else None
    return found[0] if found else None


def kernel(text: Any) -> str | None:
    """Return a kernel's version, and the flavours of it that are known: `6.14.0 nvidia 64k`."""
    found = version(text)
    if found is None:
        return None
    return " ".join([found, *words_of(text[len(found) :].split("-"), FLAVOURS)])


def product(name: Any) -> str:
    """Return a GPU's product name, as far as its words are NVIDIA's."""
    return " ".join(words_of(str(name).split(), PRODUCT_WORDS)) or "unknown"


def words_of(texts: Iterable[str], allowed: Collection[str]) -> list[str]:
    """Those texts that are allowed, each once."""
    return list(dict.fromkeys(text for text in texts if text in allowed))


def repositories() -> frozenset[str]:
    """Return the models that the product's own data name; others may be somebody's own."""
    named = {row["repository"] for name in ("models", "drafts") for row in table(name)}
    return frozenset(named | {row["target"] for row in table("drafts")})


def profiles() -> frozenset[str]:
    """Return the groups that are Rackwright's profiles; all others are a site's own names."""
    return frozenset(row["name"] for row in table("measured")["profiles"])


# -- options of an engine


def options(wanted: Mapping[str, Any], keys: Mapping[tuple[str, ...], Key]) -> dict[str, Any]:
    """Return the options that the engine has, by their dotted names, with values that its own data know."""
    return {".".join(path): value for path, value in _options(wanted, keys, ())}


def _options(
    wanted: Mapping[str, Any], keys: Mapping[tuple[str, ...], Key], above: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], Any]]:
    for path, key in keys.items():
        if path[:-1] != above or path[-1] not in wanted:
            continue
        value = wanted[path[-1]]
        inner = parsed(value)
        below = list(_options(inner, keys, path)) if isinstance(inner, Mapping) else []
        yield from below or [(path, _value(value, key))]


def _value(value: Any, key: Key) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return len(value)
    found = (switch(value), number(value), one_of(value, OPTION_WORDS.union(key.values)))
    return next((one for one in found if one is not None), SET)
