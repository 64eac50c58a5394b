"""The lab's serving images, made once and kept in the cache, and pushed to the lab's registries under their real names.

`ensure(layout, names, Login("10.79.1.2:443", authority, "$oauthtoken", key), progress)` is all that the lab calls.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import shutil
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.machine.trees import remove_tree
from rackwright_lab.standins import oci, rootfs
from rackwright_lab.standins.option_tables import table_of

REPOSITORY = "nvidia/tensorrt-llm/release"
VERSIONS = (
    "1.1.0rc0", "1.2.0rc0", "1.2.0rc1", "1.2.0rc6", "1.2.1",
    "1.3.0rc1", "1.3.0rc5", "1.3.0rc8", "1.3.0rc9", "1.3.0rc12", "1.3.0rc27", "1.4.0rc1",
)  # fmt: skip
MULTI_ARCH = "1.3.0rc27"
"""This version's tag is an index of linux/amd64 and linux/arm64; the others are plain amd64 manifests."""
ARM64_ONLY = "1.2.0rc6-arm64"
"""A tag that only has linux/arm64 (its files are amd64's: it is there to be refused)."""
WITH_MPI = ("1.2.1", "1.3.0rc5", "1.3.0rc12")
"""Versions whose images have Open MPI, as all real ones have: 80 MB, for an endpoint of several hosts alone."""
MPI_APART = {"1.1.0rc0": "1.1.0rc0-mpi"}
"""A version that single hosts pull all the time, and the tag of its image with Open MPI."""
VLLM = "vllm/vllm-openai:v0.14.1"
SGLANG = "lmsysorg/sglang:v0.5.8"
# Raise it when the image's configuration or layout changes; recipe and engine are in the key already.
FORMAT = 2
_KEPT_SECONDS = 24 * 3600
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


_NVIDIA = {
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,video",
    "NVIDIA_REQUIRE_CUDA": "cuda>=9.0",
    "PYTHONUNBUFFERED": "1",
}
_STEPS = (
    rootfs.make_small_base,
    rootfs.add_wheels,
    rootfs.add_trtllm,
    rootfs.add_schema,
    rootfs.add_shared,
    rootfs.add_vllm,
    rootfs.add_vllm_tables,
    rootfs.add_sglang,
    rootfs.add_sglang_tables,
    rootfs.add_mpi,
)
"""What makes a layer each; every image has some of them."""
_TITLE = {"org.opencontainers.image.title": "lab stand-in"}


def _config(entry: tuple[str, ...], folder: str, environment: dict[str, str], **labels: str) -> dict[str, Any]:
    variables = {"PATH": _PATH, **_NVIDIA, **environment}
    return {
        "Env": [f"{name}={value}" for name, value in variables.items()],
        "Entrypoint": list(entry),
        "WorkingDir": folder,
        "Labels": {**_TITLE, **labels},
    }


def _trtllm_config(version: str) -> dict[str, Any]:
    environment = {
        "NVIDIA_PRODUCT_NAME": "TensorRT-LLM",
        "TRT_LLM_VERSION": version,
        "TRTLLM_STANDIN_VERSION": version,
    }
    label = {"com.nvidia.tensorrt_llm.version": version}
    return _config(("/opt/nvidia/nvidia_entrypoint.sh",), "/app/tensorrt_llm", environment, **label)


def _vllm_config(version: str) -> dict[str, Any]:
    environment = {"VLLM_USAGE_SOURCE": "production-docker-image", "VLLM_STANDIN_VERSION": version}
    return _config(("vllm", "serve"), "/vllm-workspace", environment)


def _sglang_config(version: str) -> dict[str, Any]:
    return _config(("/opt/nvidia/nvidia_entrypoint.sh",), "/sgl-workspace/sglang", {"SGLANG_STANDIN_VERSION": version})


def key(versions: tuple[str, ...]) -> str:
    """Name the images' contents: another list of versions, recipe or engine gives another key."""
    digest = hashlib.sha256(json.dumps([FORMAT, versions, MPI_APART, VLLM, SGLANG, *rootfs.OTHERS]).encode())
    for standin in rootfs.OTHERS.values():
        digest.update(standin.name.encode() + table_of(standin).encode())
    for source in (Path(rootfs.__file__), *rootfs.engine_sources()):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Login:
    """A registry as HOST:PORT, the authority (PEM) that issued its certificate, and a login if it asks for one."""

    address: str
    authority: Path
    user: str = ""
    password: str = field(default="", repr=False)


def of_hub(name: str) -> bool:
    """Tell whether an image is one of Docker Hub's; the others are nvcr.io's."""
    return not name.startswith(REPOSITORY)


def ensure(layout: Path, names: Callable[[str], bool], login: Login, progress: Progress) -> dict[str, str]:
    """Push each image of the layout whose name is wanted and that the registry lacks.

    Args: what `build` returned, which names, the registry, where to say what is going on.
    Returns name (REPOSITORY:TAG) to digest. Raises LabError when something cannot be pushed.
    """
    wanted = {name: digest for name, digest in oci.tags(layout).items() if names(name)}
    client = _Registry(login)
    missing = [name for name, digest in wanted.items() if client.digest(name) != digest]
    if missing:
        with progress.step(f"pushing {len(missing)} serving image(s)"):
            client.push(layout, missing)
    return wanted


def build(cache: Path, progress: Progress, versions: tuple[str, ...] = VERSIONS) -> Path:
    """Return the OCI layout with all images, made now if the cache lacks it."""
    folder = cache / "image"
    folder.mkdir(parents=True, exist_ok=True)
    layout = folder / f"layout-{key(versions)}"
    with _only_one(folder / "lock"):
        if not layout.is_dir():
            sweep(folder, time.time() - _KEPT_SECONDS)
            with progress.step("making the serving images (about 30 s, once)"):
                _make(folder, layout, versions)
    return layout


def sweep(folder: Path, since: float) -> None:
    """Remove what killed runs left half made, and layouts older than `since`; only under the folder's lock."""
    for entry in filter(Path.is_dir, folder.iterdir()):
        whole = entry.name.startswith("layout-") and entry.suffix != ".partial"
        if not whole or entry.stat().st_mtime < since:
            remove_tree(entry)


def _make(folder: Path, layout: Path, versions: tuple[str, ...]) -> None:
    partial = layout.with_suffix(".partial")
    remove_tree(partial)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        root = Path(work) / "root"
        root.mkdir()
        written = oci.Layout(partial)
        _fill(root, written, versions)
        written.close()
    partial.rename(layout)


def _fill(root: Path, written: oci.Layout, versions: tuple[str, ...]) -> None:
    files = set[str]()
    layers = {step.__name__.removeprefix("add_"): _layer(root, written, step, files) for step in _STEPS}
    trtllm = [layers[name] for name in ("make_small_base", "wheels", "trtllm")]
    for version in versions:
        more = ["mpi"] if version in WITH_MPI else ["schema"] if version == rootfs.SCHEMA_VERSION else []
        _tag(written, [*trtllm, *(layers[name] for name in more)], version)
    for version, tag in MPI_APART.items():
        both = written.add_image([*trtllm, layers["mpi"]], "amd64", _trtllm_config(version))
        written.tag(both, f"{REPOSITORY}:{tag}")
    arm = written.add_image(trtllm, "arm64", _trtllm_config(ARM64_ONLY.removesuffix("-arm64")))
    written.tag(arm, f"{REPOSITORY}:{ARM64_ONLY}")
    for name, engine in ((VLLM, "vllm"), (SGLANG, "sglang")):
        _tag_of_hub(written, layers, (engine,), name.rpartition(":v")[2], name)
    for name, other in rootfs.OTHERS.items():
        _tag_of_hub(written, layers, (other.engine, f"{other.engine}_tables"), other.name, name)


def _tag_of_hub(
    written: oci.Layout, layers: dict[str, oci.Layer], parts: tuple[str, ...], version: str, name: str
) -> None:
    config = {"vllm": _vllm_config, "sglang": _sglang_config}[parts[0]](version)
    stack = [layers[part] for part in ("make_small_base", "wheels", "shared", *parts)]
    written.tag(written.add_image(stack, "amd64", config), name)


def _layer(root: Path, written: oci.Layout, step: Callable[[Path], None], files: set[str]) -> oci.Layer:
    """Let a step add its files; they make one layer, and join `files`, those of the layers below."""
    step(root)
    new = rootfs.files_below(root) - files
    files |= new
    return written.add_layer(rootfs.layer(root, new))


def _tag(written: oci.Layout, layers: list[oci.Layer], version: str) -> None:
    image = written.add_image(layers, "amd64", _trtllm_config(version))
    if version == MULTI_ARCH:
        image = written.add_index([image, written.add_image(layers, "arm64", _trtllm_config(version))])
    written.tag(image, f"{REPOSITORY}:{version}")


class _Registry:
    """The registry to push to. The login goes by header and by a file for its owner only, never by argv."""

    def __init__(self, login: Login) -> None:
        self._address = login.address
        self._authority = login.authority
        pair = f"{login.user}:{login.password}"
        self._login = base64.b64encode(pair.encode()).decode() if login.user else ""

    def digest(self, name: str) -> str | None:
        """Return the digest that an image has there, or None."""
        headers = {"Accept": f"{oci.MANIFEST}, {oci.INDEX}"}
        if self._login:
            headers["Authorization"] = f"Basic {self._login}"
        repository, _, tag = name.rpartition(":")
        url = f"https://{self._address}/v2/{repository}/manifests/{tag}"
        trust = ssl.create_default_context(cafile=self._authority)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
        )
        try:
            with opener.open(urllib.request.Request(url, headers=headers, method="HEAD"), timeout=30) as answer:
                found: str | None = answer.headers.get("Docker-Content-Digest")
                return found
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise LabError(f"The lab's registry at {self._address} answered {error.code} for {name}.") from error
        except urllib.error.URLError as error:
            raise LabError(f"The lab's registry at {self._address} cannot be reached: {error.reason}") from error

    def push(self, layout: Path, names: list[str]) -> None:
        """Push images of a layout; layers that are there already are not sent again."""
        with tempfile.TemporaryDirectory() as work:
            auth = Path(work) / "auth.json"
            descriptor = os.open(auth, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                json.dump({"auths": {self._address: {"auth": self._login}} if self._login else {}}, stream)
            trust = Path(work) / "trust"
            trust.mkdir()
            shutil.copyfile(self._authority, trust / "ca.crt")
            for name in names:
                run(
                    "skopeo", "copy", "--quiet", "--all", "--dest-authfile", auth, "--dest-cert-dir", trust,
                    f"oci:{layout}:{name}", f"docker://{self._address}/{name}",
                    env={"NO_PROXY": "*", "no_proxy": "*"},
                )  # fmt: skip


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
