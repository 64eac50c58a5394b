"""The files of the serving images: a small Debian, Python packages, and one stand-in engine under its real names."""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from rackwright_lab.machine import inherited
from rackwright_lab.machine.shell import run
from rackwright_lab.standins import oci
from rackwright_lab.standins.option_tables import StandIn, write_tables

SUITE = "bookworm"
PACKAGES = ("python3",)
MPI_PACKAGES = ("openmpi-bin", "python3-mpi4py")
STANDINS = Path(__file__).parent
ENGINE = STANDINS / "engine"
PACKAGE = "lab_standins"
"""Under this name the images of vLLM and SGLang hold what those two are made of."""
SITE = "usr/local/lib/python3.11/dist-packages"

# The whole closure, so that pip resolves nothing. hf-xet stays out: the hub of the lab speaks plain HTTP.
WHEELS = (
    "annotated-types==0.8.0", "anyio==4.16.0", "certifi==2026.10.18", "charset-normalizer==3.5.2", "click==8.5.1",
    "filelock==4.2.11", "fsspec==2026.9.0", "h11==0.16.0", "huggingface_hub==0.36.2", "idna==3.20",
    "openai-harmony==0.0.4", "packaging==26.3", "pydantic==2.14.3", "pydantic_core==2.50.4", "PyYAML==6.0.3",
    "requests==2.34.2", "starlette==1.10.0", "tqdm==4.70.1", "typing-inspection==0.4.5", "typing_extensions==4.16.0",
    "urllib3==2.8.0", "uvicorn==0.54.0",
)  # fmt: skip
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
# Settings of this machine, and what no container of the lab reads; a small image is a hundred small disks.
_LEFT_OUT = (
    "etc/apt", "etc/resolv.conf", "etc/hostname", "etc/machine-id", "var/lib/apt", "var/cache", "var/log", "tmp",
    "dev", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n",
    "usr/share/perl", "usr/lib/x86_64-linux-gnu/perl", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/python3.11/lib2to3",
)  # fmt: skip
# What no stand-in starts: a run of all tests unpacks such an image two hundred times.
_SPARE = (
    "usr/bin/perl*", "usr/lib/x86_64-linux-gnu/perl*", "usr/lib/x86_64-linux-gnu/libperl*", "usr/share/perl5",
    "usr/lib/x86_64-linux-gnu/libdb-*", "usr/lib/python3.11/pydoc_data", "usr/lib/python3.11/distutils",
    "var/lib/dpkg", "usr/share/bash-completion", "usr/share/lintian", "usr/lib/terminfo",
)  # fmt: skip
_RUN = "#!/usr/bin/python3\nimport sys\nfrom {module} import {name}\nsys.exit({name}())\n"
TRTLLM_SCRIPTS = {
    "usr/local/bin/trtllm-serve": _RUN.format(module="tensorrt_llm.commands.serve", name="entry"),
    "usr/local/bin/trtllm-llmapi-launch": (ENGINE / "commands/llmapi_launch.sh").read_text(encoding="utf-8"),
}
VLLM_SCRIPTS = {"usr/local/bin/vllm": _RUN.format(module="vllm.entrypoints.cli.main", name="main")}
COMMON_SCRIPTS = {
    "usr/local/bin/hf": _RUN.format(module="huggingface_hub.cli.hf", name="main"),
    "usr/local/bin/huggingface-cli": _RUN.format(module="huggingface_hub.commands.huggingface_cli", name="main"),
    "opt/nvidia/nvidia_entrypoint.sh": (
        "#!/bin/sh\n"
        "# The real image greets and warns when no GPU is there, then runs what it was asked to run.\n"
        "nvidia-smi -L >/dev/null 2>&1 || echo 'WARNING: The NVIDIA Driver was not detected.' >&2\n"
        '[ "$#" -gt 0 ] || set -- /bin/bash\nexec "$@"\n'
    ),
}

NEWEST_VLLM = "0.33.0"
_VLLM = "vllm/vllm-openai"
OTHERS = {
    **{
        f"{_VLLM}:v{tag}": StandIn("vllm", tag.partition("-")[0])
        for tag in ("0.12.0", "0.25.0", "0.28.0-ubuntu2404", NEWEST_VLLM)
    },
    **{
        f"{_VLLM}:{model}": StandIn("vllm", NEWEST_VLLM)
        for model in ("glm53-flash", "kimi-k3", "minimax-m3", "qwen38", "qwen38-flash-next")
    },
    "eugr/spark-vllm-b12x:latest": StandIn("vllm", NEWEST_VLLM, "B12X_MLA_SPARSE"),
    "lmsysorg/sglang:v0.5.23": StandIn("sglang", "0.5.23"),
}
"""Further images of Docker Hub that profiles name, with the version that they pose as: a tag of a model, the newest."""
SCHEMA_VERSION = "1.4.0rc1"
"""The version whose image ships a schema of its file."""
_WRITE_SCHEMA = f"""\
import json
from tensorrt_llm.llmapi.llm_args import TorchLlmArgs
file = "/{SITE}/tensorrt_llm/schemas/trtllm-serve-config.schema.json"
open(file, "w").write(json.dumps(TorchLlmArgs.model_json_schema(), indent=2, sort_keys=True))
"""

_NAMES = "from lab_standins.{module} import {names}\n\n__all__ = [{quoted}]\n"


def _names(module: str, *names: str) -> str:
    return _NAMES.format(module=module, names=", ".join(names), quoted=", ".join(f'"{name}"' for name in names))


SHIMS = {
    "vllm": {
        "vllm/__init__.py": _names("vllm", "__version__"),
        "vllm/engine/__init__.py": "",
        "vllm/engine/arg_utils.py": _names("vllm.arg_utils", "AsyncEngineArgs", "EngineArgs"),
        "vllm/entrypoints/__init__.py": "",
        "vllm/entrypoints/cli/__init__.py": "",
        "vllm/entrypoints/cli/main.py": _names("vllm.main", "main"),
        "vllm/entrypoints/openai/__init__.py": "",
        "vllm/entrypoints/openai/cli_args.py": _names(
            "vllm.arguments", "make_arg_parser", "validate_parsed_serve_args"
        ),
        "vllm/utils/__init__.py": "",
        "vllm/utils/argparse_utils.py": _names("vllm.arguments", "FlexibleArgumentParser"),
    },
    "sglang": {
        "sglang/__init__.py": _names("sglang", "__version__"),
        "sglang/launch_server.py": _names("sglang.launch", "main") + '\nif __name__ == "__main__":\n    main()\n',
        "sglang/srt/__init__.py": "",
        "sglang/srt/server_args.py": _names("sglang.server_args", "ServerArgs", "prepare_server_args"),
    },
}
"""Engine to files (below the folder of packages): the real packages' modules, which hand on the stand-in's names."""


def make_base(root: Path, packages: tuple[str, ...] = PACKAGES) -> None:
    """Make the Debian below everything, with these packages and nothing of this machine's settings."""
    options = [f"--aptopt={setting}" for setting in inherited.apt_options()]
    run(
        "mmdebstrap", "--mode=root", "--variant=essential", f"--include={','.join(packages)}", *options,
        "--dpkgopt=force-unsafe-io", "--skip=check/empty", SUITE, root, "-", stdin=inherited.sources_list(SUITE),
    )  # fmt: skip
    for name in _LEFT_OUT:
        path = root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for name in ("tmp", "dev", "var/cache", "var/log"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    # A layer's files have no times, and byte code that Debian made names its source's.
    compile_all(root, "usr/lib/python3.11")


def make_small_base(root: Path, packages: tuple[str, ...] = PACKAGES) -> None:
    """Make the same without Perl and dpkg, for the stand-ins."""
    make_base(root, packages)
    for path in [path for pattern in _SPARE for path in root.glob(pattern)]:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def add_mpi(root: Path) -> None:
    """Add Open MPI and mpi4py, with all that they need; only the files that are not there yet."""
    with tempfile.TemporaryDirectory(dir=root.parent) as beside:
        make_small_base(Path(beside), (*PACKAGES, *MPI_PACKAGES))
        # No ssh: whether the real image has one is not known, and none of Rackwright's code may need it there.
        left_out = ("var/lib", "usr/include", "usr/lib/gcc", "usr/bin/ssh", "usr/lib/openssh")
        for name in sorted(files_below(Path(beside)) - files_below(root)):
            if not name.startswith(left_out):
                _put(Path(beside) / name, root / name)


def _put(source: Path, target: Path) -> None:
    if source.is_symlink() or not source.is_dir():
        shutil.copy2(source, target, follow_symlinks=False)
    else:
        target.mkdir()


def add_wheels(root: Path) -> None:
    """Install the Python packages for the image's Python, whichever Python runs this."""
    platforms = [f"--platform={name}" for name in _PLATFORMS]
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary=:all:",
        "--python-version=3.11", "--implementation=cp", "--abi=cp311", "--abi=abi3", "--abi=none", *platforms,
        "--target", root / SITE, *WHEELS,
    )  # fmt: skip
    shutil.rmtree(root / SITE / "bin", ignore_errors=True)
    add_scripts(root, COMMON_SCRIPTS)
    compile_all(root, SITE)


def add_scripts(root: Path, scripts: Mapping[str, str]) -> None:
    """Write executable files."""
    for name, text in scripts.items():
        script = root / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)


def add_trtllm(root: Path) -> None:
    """Put the stand-in in place as `tensorrt_llm`, with its command on PATH."""
    _copy(ENGINE, root / SITE / "tensorrt_llm")
    add_scripts(root, TRTLLM_SCRIPTS)
    (root / "app/tensorrt_llm").mkdir(parents=True)
    compile_all(root, f"{SITE}/tensorrt_llm")


def add_schema(root: Path) -> None:
    """Add what newer images ship: the JSON Schema of the file, made by the stand-in's own classes of that version."""
    folder = root / SITE / "tensorrt_llm"
    (folder / "schemas").mkdir()
    (folder / "version.py").write_text(f'__version__ = "{SCHEMA_VERSION}"\n')
    run("chroot", root, "env", f"TRTLLM_STANDIN_VERSION={SCHEMA_VERSION}", "python3", "-B", "-c", _WRITE_SCHEMA)


def add_shared(root: Path) -> None:
    """Put in place what the stand-ins of vLLM and SGLang share."""
    put_package(root / SITE, "engine", "common")
    compile_all(root, f"{SITE}/{PACKAGE}")


def add_vllm(root: Path) -> None:
    """Put the stand-in in place as `vllm`, with its command on PATH."""
    _add_with_shims(root, "vllm")
    add_scripts(root, VLLM_SCRIPTS)
    (root / "vllm-workspace").mkdir()


def add_sglang(root: Path) -> None:
    """Put the stand-in in place as `sglang`."""
    _add_with_shims(root, "sglang")
    (root / "sgl-workspace/sglang").mkdir(parents=True)


def add_vllm_tables(root: Path) -> None:
    """Add the flags of vLLM's other versions."""
    put_tables(root / SITE, "vllm")


def add_sglang_tables(root: Path) -> None:
    """Add the flags of SGLang's other versions."""
    put_tables(root / SITE, "sglang")


def put_tables(site: Path, engine: str) -> None:
    """Write the flags of an engine's other versions into a folder of Python packages that holds its stand-in."""
    standins = {one for one in OTHERS.values() if one.engine == engine}
    write_tables(site / PACKAGE / engine / "tables", sorted(standins, key=lambda one: one.name))


def _add_with_shims(root: Path, name: str) -> None:
    put_package(root / SITE, name)
    compile_all(root, f"{SITE}/{PACKAGE}/{name}")
    compile_all(root, f"{SITE}/{name}")


def put_package(site: Path, *names: str) -> None:
    """Copy parts of the stand-ins into a folder of Python packages, with their shims."""
    for name in names:
        _copy(STANDINS / name, site / PACKAGE / name)
        for file, text in SHIMS.get(name, {}).items():
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).write_text(text)
    (site / PACKAGE / "__init__.py").touch()


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def compile_all(root: Path, folder: str) -> None:
    """Compile with the image's own Python, so that a container does not at each start."""
    argv = ("python3", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", f"/{folder}")
    run("chroot", root, *argv)


def engine_sources() -> Iterator[Path]:
    """Yield what the engines' layers are made of, in a stable order."""
    for name in ("engine", "common", "vllm", "sglang"):
        yield from sorted(path for path in (STANDINS / name).rglob("*") if path.suffix in (".py", ".sh"))


def files_below(root: Path) -> set[str]:
    """Return the names of everything in a root file system, relative to it."""
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def layer(root: Path, names: set[str]) -> bytes:
    """Return a tar file of those names, the same bytes for the same contents."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(names):
            tar.add(root / name, arcname=name, recursive=False, filter=oci.plain)
    return stream.getvalue()
