"""Writes docs/reference/support.md: what was seen to work, what is expected to, and what is refused.

Run it with `python scripts/support.py`; tests/unit/test_support.py compares the page with what it would write. Figures
come from preflight's data, the engines' data and group_vars/. What was seen is said here, with the test that sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rackwright.concerns.preflight.row import figures
from rackwright.profiles import catalog
from rackwright_engines.data import PRODUCTS
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.version import bare, parse_version
from rackwright_lab.gpu.models import DRIVER
from rackwright_lab.servers import image as images
from rackwright_lab.servers.toolkit import VERSIONS
from rackwright_lab.standins.rootfs import OTHERS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "support.md"
ENGINES = ROOT / "packages" / "engines" / "rackwright_engines" / "data"
REPOSITORIES = {
    "nvcr.io/nvidia/tensorrt-llm/release": "tensorrt-llm",
    "vllm/vllm-openai": "vllm",
    "lmsysorg/sglang": "sglang",
}
HEAD = """\
# What is supported

Made by `python scripts/support.py` from preflight's data, the engines' data and `group_vars/`; do not edit it.

| word | meaning |
|---|---|
| seen | it ran, and the row has its test or occasion; **stand-in** says that something else took its place |
| expected | nothing is known against it, and it was not seen here |
| refused | the named check of preflight stops that host before anything is written, or the settings are not valid |
"""
SYSTEMS = (
    ("Debian 12", "seen: whole deploys, switches and teardowns on booted hosts (`tests/lab/test_deploy.py`)"),
    ("Ubuntu 24.04", "seen: a whole deploy, a reboot and a teardown on a booted host (`tests/lab/test_ubuntu.py`)"),
    (
        "Debian 13, Ubuntu 22.04",
        "expected; only names of packages and repositories are tested (`tests/unit/test_docker.py`)",
    ),
    ("DGX OS and others by descent (`ID_LIKE`)", "expected; preflight takes them (`tests/unit/test_preflight.py`)"),
    ("any other family", "refused: `operating system`"),
    ("PID 1 is not systemd", "refused: `systemd`"),
    ("an image as its root: ostree, NixOS, Flatcar, Ubuntu Core", "refused: `immutable system`"),
    ("root, `/etc` or the units' folder read-only", "refused: `read-only` (`tests/lab/test_field.py`)"),
    ("cgroup v1", "`warn`: `cgroup`; Rackwright does not need v2, and systemd and Docker give v1 up"),
)
DOCKER = (
    ("20.10, Debian 12's `docker.io`", "seen (`tests/lab/test_deploy.py`)"),
    ("Ubuntu 24.04's `docker.io`", "seen (`tests/lab/test_ubuntu.py`)"),
    (
        "Docker's own packages (`docker-ce`)",
        "stand-in: Debian's Docker Engine under their names (`tests/lab/test_host.py`)",
    ),
    ("newer ones", "expected; preflight asks for no version"),
    ("masked, or none and no apt", "refused: `Docker`"),
    (
        "under another context of root's, with DOCKER_HOST in `/etc/environment` or systemd's DefaultEnvironment",
        "seen: it is still asked by `/var/run/docker.sock` (`tests/lab/test_field.py`)",
    ),
    ("with `userns-remap`", "seen: our containers use the host's user namespace (`tests/lab/test_field.py`)"),
    ("listening on TCP alone", "refused: `Docker's socket` (`tests/lab/test_field.py`)"),
    ("as a snap", "refused: `Docker as a snap`"),
    ("rootless", "refused: `rootless Docker`"),
)
REAL = {
    ("vllm", "0.14.1"): "seen: the real engine on a CPU, all rows of the full gate; whole deploys with a stand-in",
    (
        "vllm",
        "0.20.2",
    ): (
        "seen: whole deploys of the real engine on one H200 and one H100, all rows of the full gate, and as one "
        "endpoint of two hosts with an H100 each ([real hardware](../real-hardware.md)); no profile ships it"
    ),
    (
        "vllm",
        "0.32.0",
    ): "seen: whole deploys of the real engine on a CPU, all rows of the full gate (`make real`); no profile ships it",
}
"""Real engines that the product has asked, by hand."""
STANDIN = "stand-in: whole deploys (`tests/lab/test_profiles.py`); the real engine was not met"
NAMELESS = "the tag names no version, so options are checked as the newest known ones, and the image decides"
PARTLY = "expected: its options are not known whole, and the image decides"
CHECKED = "expected: its options are checked by the engine's own sources (`tests/unit/test_recipes.py`), and no more"
OF_ONE_MODEL = ("glm53-flash", "kimi-k3", "latest", "minimax-m3", "qwen38", "qwen38-flash-next")
"""Tags of vLLM's images that name no version: most name the model that they were made for."""
OF_TODAY = {
    "TensorRT-LLM 1.2.1": ("1.2.1",),
    "TensorRT-LLM 1.3.0rc5 to rc12": ("1.3.0rc5", "1.3.0rc8", "1.3.0rc9", "1.3.0rc12"),
    "TensorRT-LLM 1.4.0rc1": ("1.4.0rc1",),
    "vLLM": ("0.12.0", "0.25.0", "0.28.0-ubuntu2404", "0.33.0", *OF_ONE_MODEL),
    "SGLang": ("0.5.23",),
}
"""The versions for which profiles are shipped where a recipe was published for the machine, by their image's tag."""
TRTLLM_RELEASES = """\
1.0.0 1.1.0rc0 1.1.0rc1 1.1.0rc2 1.1.0rc3 1.1.0rc4 1.1.0rc5 1.1.0 1.2.0rc0 1.2.0rc1 1.2.0rc2
1.2.0rc2.post2 1.2.0rc3 1.2.0rc4 1.2.0rc5 1.2.0rc6 1.2.0rc6.post1 1.2.0rc6.post2 1.2.0rc6.post3 1.2.0rc7
1.2.0rc8 1.2.0 1.2.1 1.3.0rc0 1.3.0rc1 1.3.0rc2 1.3.0rc3 1.3.0rc4 1.3.0rc5 1.3.0rc5.post1 1.3.0rc5.post2
1.3.0rc6 1.3.0rc7 1.3.0rc8 1.3.0rc9 1.3.0rc10 1.3.0rc11 1.3.0rc12 1.3.0rc12.post1 1.3.0rc13 1.3.0rc14
1.3.0rc15 1.3.0rc22 1.3.0rc22.post1 1.3.0rc23 1.3.0rc23.post1 1.3.0rc24 1.3.0rc25 1.3.0rc26 1.3.0rc27
1.3.0rc28 1.3.0rc29 1.4.0rc0 1.4.0rc1
"""
"""TensorRT-LLM's releases since 1.0.0 in the package index, 2026-11-26, oldest first."""
IMAGES_ALONE = ("1.3.0rc18", "1.3.0rc21")
"""Releases that published options name and that the index lacks."""
MACHINES = {
    "B200": "b200",
    "B300": "b300",
    "GB200 tray": "gb200_tray",
    "GB300 tray": "gb300_tray",
    "H200": "h200",
    "RTX PRO 6000": "rtx_pro_6000",
    "DGX Spark": "dgx_spark",
}


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


def page() -> str:
    """Return the whole page."""
    parts = (
        HEAD,
        _table("Operating system", ("system", "state"), SYSTEMS),
        _table("Docker Engine", ("version", "state"), DOCKER),
        _table("NVIDIA container toolkit", ("version", "state"), toolkit()),
        _table("NVIDIA driver", ("profile", "machine", "architecture", "driver", "older"), drivers()),
        _driver_seen(),
        _table("Engines", ("engine", "version", "profiles", "state"), engines()),
        _table("Profiles of today", ("machine", *OF_TODAY), of_today()),
        NO_RECIPE,
        _options(),
        _table("Combinations known not to work", ("engine", "with", "state", "why"), known_bad()),
    )
    return "\n".join(parts)


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (heads, tuple("---" for _ in heads), *rows)]
    lines[1] = lines[1].replace(" ", "")
    return "\n".join([f"## {title}\n", *lines, ""])


def toolkit() -> Iterator[tuple[str, ...]]:
    """Versions of the container toolkit."""
    minimum = figures()["toolkit"]["version_minimum"]
    yield (
        f"{minimum} or newer",
        f"expected; the real one was not met: stand-in packages {' and '.join(VERSIONS)} (`tests/lab/test_host.py`)",
    )
    yield f"older than {minimum}", "`warn`: `container toolkit`; a systemd daemon-reload takes the GPUs from containers"
    yield '`mode = "legacy"`', "refused: `toolkit mode`"


def profiles() -> dict[str, dict[str, Any]]:
    """Every file of group_vars that has an image or hardware of its own, by its group."""
    found = {file.stem: yaml.load(file.read_text(), yaml.BaseLoader) or {} for file in sorted(_files())}
    return {name: values for name, values in found.items() if "image" in values or "hardware" in values}


def _files() -> Iterator[Path]:
    return (ROOT / "group_vars").glob("*.yml")


def drivers() -> Iterator[tuple[str, ...]]:
    """Yield the oldest driver of each profile that names one."""
    for name, values in profiles().items():
        hardware: Mapping[str, Any] = values.get("hardware", {})
        if "driver_minimum" in hardware:
            expected = f"{hardware['driver_minimum']} or newer: expected"
            machine = (hardware.get(key) or getattr(catalog.profile(name), key) for key in ("machine", "architecture"))
            yield f"`{name}`", *machine, expected, "refused: `driver version`"


NO_RECIPE = """\
A dash: no recipe was found for that machine with that version, so none is shipped. Most are a vendor's; those of
three DGX Sparks in a ring and of four at a switch are a community's. vLLM's and SGLang's recipes for gpt-oss-120b name
no RTX PRO 6000, SGLang's no GB200, and NVIDIA's configurations for TensorRT-LLM no RTX PRO 6000. NVIDIA's guide for
GLM-5.3-Flash adds packages to TensorRT-LLM's image, which no profile does, and
of its guide for GLM-5.2 and GLM-5.3 only the beginning was read. `b200_newest`, `dgx_spark_newest` and
`gb200_tray_newest` are earlier guides in this version's own words. None of these ran on its own hardware here:
[send a record](../how-to/real-gpu.md#send-a-record-of-your-hardware) of one that did.
"""


def _driver_seen() -> str:
    return f"""\
Seen: driver {DRIVER}, in whole deploys on one NVIDIA H200, on one H100 80GB HBM3, and on two hosts with an H100 each
([real hardware](../real-hardware.md)), with nvidia-smi's real output of the H200 (`tests/fixtures/nvidia-smi`). The
lab's GPUs pose with the same version, and readings of all other GPUs are synthetic. A kernel module of another version
than the libraries is refused: `driver module`; so is a host without a driver: `driver`.
"""


def engines() -> Iterator[tuple[str, ...]]:
    """Every version that a profile's image names, and those that were only seen."""
    shipped: dict[tuple[str, str], list[str]] = {}
    for name, values in profiles().items():
        if "image" in values:
            engine, tag = values.get("engine_kind", "tensorrt-llm"), values["image"].rpartition(":")[2]
            shipped.setdefault((engine, tag.removeprefix("v")), []).append(f"`{name}`")
    for key in sorted({*shipped, *REAL}):
        yield PRODUCTS[key[0]], key[1], ", ".join(shipped.get(key, ["-"])), REAL.get(key, _state(*key))


def _state(engine: str, version: str) -> str:
    """Whether the lab has a stand-in of that version."""
    posing = {(one.engine, name.rpartition(":")[2].removeprefix("v")) for name, one in OTHERS.items()}
    posing |= {
        (REPOSITORIES[name], tag) for name, _, tag in (one.rpartition(":v") for one in (images.VLLM, images.SGLANG))
    }
    if version in images.VERSIONS or (engine, version) in posing:
        return STANDIN if parse_version(version) else f"{STANDIN}; {NAMELESS}"
    if parse_version(version) is None:
        return f"expected: {NAMELESS}"
    return CHECKED if bare(version) in known_versions(engine) else PARTLY


def of_today() -> Iterator[tuple[str, ...]]:
    """Profiles by machine and version; a dash where no recipe of a vendor was found."""
    found = {name: catalog.profile(name).version for name in sorted(catalog.names())}
    for machine, group in MACHINES.items():
        of_machine = [name for name in found if f"{name}_".startswith(f"{group}_")]
        cells = ([f"`{name}`" for name in of_machine if found[name] in tags] for tags in OF_TODAY.values())
        yield machine, *(", ".join(names) or "-" for names in cells)


def _options() -> str:
    versions = "; ".join(f"{PRODUCTS[engine]} {', '.join(known_versions(engine))}" for engine in REPOSITORIES.values())
    missing = ", ".join(one for one in TRTLLM_RELEASES.split() if one not in known_versions("tensorrt-llm"))
    return f"""\
Options are known for {versions}.

No data, since the source of their own tag was not read, for TensorRT-LLM {missing},
and for {" and ".join(IMAGES_ALONE)}, which are images without a package.
`rackwright engine-data` makes each exact on a host that has the image: newer ones ship a schema of their file, the
classes of the others are walked.

Another version is never refused for its number: it is checked as the nearest one, with a warning, and the image has the
last word ([engine options](../how-to/engine-options.md)).
"""


def known_versions(engine: str) -> list[str]:
    """Versions of an engine whose options are in our data, oldest line first."""
    files = sorted((ENGINES / engine).glob("[0-9]*.yaml"))
    return [version for file in files for version in load_yaml(file.read_text())["versions"]]


def known_bad() -> Iterator[tuple[str, ...]]:
    """Yield what the settings' check refuses or warns of, by the engines' data."""
    states = {"refuse": "refused, unless `accept_known_bad: true`", "warn": "`warn`"}
    for row in load_yaml((ENGINES / "known_bad.yaml").read_text()):
        others = (row[key] for key in ("gpu", "draft", "model") if key in row)
        engine = f"{PRODUCTS[row['engine']]} {', '.join(row['versions'])}"
        yield engine, ", ".join(others), states[row["level"]], f"[{row['text']}]({row['link']})"


if __name__ == "__main__":
    main()
