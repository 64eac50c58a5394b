"""Build the server's options with the engine's classes, and print refusals. Runs alone inside a serving image.

`python3 - KIND MODEL FILE GPUS [WORD...]`, where WORDs are further arguments of the server. The first line of
standard output is the answer as JSON, the others are for people. Exit status: 0, or 3 when the engine refuses them.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rackwright.concerns.options.host.in_image import VLLM_PARSERS, first, leave, real_output

REFUSED = 3
IMAGE = "image"
"""Key of the settings, and of no engine's file, for what the image lacks."""
AUTODEPLOY = "_autodeploy"
Row = dict[str, str]


def build_trtllm(model: str, file: str, gpus: int, words: Sequence[str]) -> None:
    """Build TensorRT-LLM's options: its merge function and strict class; arguments by its command, which is not run."""
    if words:
        first("tensorrt_llm.commands.serve:serve").make_context("serve", [model, *words])
    yaml = importlib.import_module("yaml")
    extra = yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}
    if AUTODEPLOY in (extra.get("backend"), *(argument.removeprefix("--backend=") for argument in words)):
        raise NotImplementedError(f"the file of backend {AUTODEPLOY} is of another class")
    args_class = first("tensorrt_llm.llmapi.llm_args:TorchLlmArgs", "tensorrt_llm.llmapi:TorchLlmArgs")
    merge = first(
        "tensorrt_llm.llmapi.llm_utils:update_llm_args_with_extra_dict",
        "tensorrt_llm.llmapi:update_llm_args_with_extra_dict",
    )
    options = {"model": model, **({"gpus_per_node": gpus} if "gpus_per_node" in args_class.model_fields else {})}
    args_class(**merge(options, extra))


class LackingError(ValueError):
    """The image itself lacks something, so the setting at fault is `image`."""


def build_launched(model: str, file: str, gpus: int, words: Sequence[str]) -> None:
    """Check TensorRT-LLM over several hosts: the programs that start its ranks, and then its options."""
    for program in ("mpirun", "orted", "trtllm-llmapi-launch"):
        if shutil.which(program) is None:
            raise LackingError(f"over several hosts it wants {program}, which the image does not have")
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "(Open MPI) 4." not in version:
        raise LackingError(f"over several hosts it wants Open MPI 4; the image has: {version.strip().splitlines()[:1]}")
    build_trtllm(model, file, gpus, words)


def build_vllm(model: str, file: str, gpus: int, words: Sequence[str]) -> None:  # noqa: ARG001 - the builders are called alike
    """Build vLLM's options: its parser and option class, not its whole configuration, which needs all GPUs."""
    parser_class = first(
        "vllm.utils.argparse_utils:FlexibleArgumentParser",
        "vllm.utils:FlexibleArgumentParser",
    )
    fill = first(*VLLM_PARSERS)
    options = first("vllm.engine.arg_utils:EngineArgs")
    parser = fill(parser_class())
    args = parser.parse_args(["--model", model, *config(file), *words])
    options.from_cli_args(args)
    check_drafting(getattr(args, "speculative_config", None))


def check_drafting(section: Any) -> None:
    """Check the keys of speculative-config by the image's class, which vLLM itself builds only with its GPUs."""
    try:
        config_class = first("vllm.config:SpeculativeConfig", "vllm.config.speculative:SpeculativeConfig")
    except ImportError:
        return
    fields = getattr(config_class, "__dataclass_fields__", {})
    wrong = [key for key in section or {} if key.replace("-", "_") not in fields]
    if fields and wrong:
        raise ValueError(f"--speculative-config has no key {wrong[0]!r}")


def build_sglang(model: str, file: str, gpus: int, words: Sequence[str]) -> None:  # noqa: ARG001 - the builders are called alike
    """Build SGLang's options: its parser and option class, which newer versions check only in an explicit call."""
    prepare = first("sglang.srt.server_args:prepare_server_args")
    args = prepare(["--model-path", model, *config(file), *words])
    resolve = getattr(args, "resolve_once", None)
    if resolve is not None:
        resolve()


def config(file: str) -> list[str]:
    """Return the arguments for the file; none for an empty one, as on the server's command line."""
    return [] if Path(file).read_text(encoding="utf-8").strip() in ("", "{}") else ["--config", file]


BUILDERS: dict[str, Callable[[str, str, int, Sequence[str]], None]] = {
    "tensorrt-llm": build_trtllm,
    "tensorrt-llm+mpirun": build_launched,
    "vllm": build_vllm,
    "sglang": build_sglang,
}


def rows_of(error: BaseException) -> list[Row]:
    """Return the engine's refusals: a row for each of pydantic's errors, or one for any other."""
    if isinstance(error, LackingError):
        return [{"key": IMAGE, "reason": f"{error}; set an image that has it, or hosts: 1"}]
    if hasattr(error, "format_message"):
        text = f"the server's command line refuses it: {error.format_message()}"
        return [{"key": key_in(text), "reason": text}]
    if not hasattr(error, "errors"):
        text = str(error).strip()
        return [{"key": key_in(text), "reason": text.splitlines()[-1] if text else type(error).__name__}]
    return [{"key": ".".join(map(str, found["loc"])), "reason": str(found["msg"]).strip()} for found in error.errors()]


def key_in(text: str) -> str:
    """Return the key in a refusal, as far as its text shows it."""
    found = re.search(r'no field "(\w+)"|--([\w-]+)|\b([a-z]+(?:_[a-z0-9]+)+)\b', text)
    return next(filter(None, found.groups()), "") if found else ""


def refuses(error: BaseException) -> bool:
    """Tell a refusal from a failure: engines raise ValueError; other types count when their own code raised them.

    An error that can format its message for the shell is a usage error of click.
    """
    if isinstance(error, ValueError) or hasattr(error, "format_message"):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    ours = frames[-1].filename == refuses.__code__.co_filename
    return isinstance(error, TypeError | AttributeError | KeyError | AssertionError) and not ours


def answer(kind: str, model: str, file: str, gpus: int, words: Sequence[str] = ()) -> dict[str, Any]:
    """Build the options; return whether they were checked, the refusals, and why they were not checked."""
    try:
        BUILDERS[kind](model, file, gpus, words)
    except SystemExit as error:  # argparse
        rows = rows_of(ValueError(f"the server's command line refuses it: {Said.text or error.code}"))
        return {"checked": True, "refused": rows, "why": ""}
    except Exception as error:  # an engine may fail with anything
        if refuses(error):
            return {"checked": True, "refused": rows_of(error), "why": ""}
        return {"checked": False, "refused": [], "why": f"{type(error).__name__}: {error}".splitlines()[0][:500]}
    return {"checked": True, "refused": [], "why": ""}


class Said:
    """Keeps the last error text of argparse, which it only prints."""

    text = ""

    @classmethod
    def listen(cls) -> None:
        """Record argparse's errors from now on."""
        argparse = importlib.import_module("argparse")
        before = argparse.ArgumentParser.error

        def error(parser: Any, message: str) -> None:
            cls.text = message
            before(parser, message)

        argparse.ArgumentParser.error = error


def lines(found: dict[str, Any], file: str) -> list[str]:
    """Return the answer for people: file, key, reason."""
    name = file.rsplit("/", 1)[-1]
    if not found["checked"]:
        return [f"not checked inside the image: {found['why']}"]
    places = {IMAGE: IMAGE, "": f"{name}: (no key named)"}
    return [f"refused: {places.get(row['key'], f'{name}: ' + row['key'])}: {row['reason']}" for row in found["refused"]]


def main(words: Sequence[str]) -> NoReturn:
    """Print the answer on the real standard output."""
    out = real_output()
    Said.listen()
    kind, model, file, gpus, *more = words
    found = answer(kind, model, file, int(gpus), more)
    leave(out, "\n".join([json.dumps(found), *lines(found, file)]), REFUSED if found["refused"] else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
