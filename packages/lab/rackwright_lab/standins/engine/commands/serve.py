"""`trtllm-serve [serve] MODEL [OPTIONS]`: binds at once, loads, and only then listens."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

import click
import yaml
from click.core import ParameterSource

from .. import __version__, log
from ..dialects import Harmony, Plain
from ..faults import Faults
from ..llmapi.llm_args import TorchLlmArgs
from ..llmapi.llm_utils import update_llm_args_with_extra_options
from ..loading import exit_at_once, load, model_name
from ..serve import listen
from ..serve.app import application
from ..serve.state import Engine
from .options import click_options, engine_names

_KV_OPTIONS = {"kv_cache_free_gpu_memory_fraction": "free_gpu_memory_fraction", "kv_cache_dtype": "dtype"}


def _command_line(values: dict[str, Any], typed: set[str]) -> tuple[dict[str, Any], frozenset[str]]:
    names = engine_names(__version__)
    options = {names[name]: value for name, value in values.items() if name in names and value is not None}
    given = {names[name] for name in typed if name in names}
    options["kv_cache_config"] = {
        key: values[name] for name, key in _KV_OPTIONS.items() if values.get(name) is not None
    }
    if typed & set(_KV_OPTIONS):
        given.add("kv_cache_config")
    return options, frozenset(given)


def _set_by_path(options: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    for setting in settings:
        path, _, value = setting.partition("=")
        *sections, last = path.split(".")
        target = options
        for section in sections:
            target = target.setdefault(section, {})
        target[last] = yaml.safe_load(value)
    return options


def _facts(options: dict[str, Any], name: str, port: int) -> dict[str, Any]:
    facts = {f"option.{key}": value for key, value in options.items()}
    drafting = options.get("speculative_config") is not None
    return facts | {"version": __version__, "port": port, "model": name, "drafting": drafting}


def run(name: str, host: str, port: int, options: dict[str, Any]) -> None:
    """Bind, validate, load and serve under `name` until a signal ends it. Raises what a start-up fails with."""
    bound = listen.bound(host, port)
    effective = TorchLlmArgs(**options).model_dump(serialize_as_any=True)
    log.emit(f"LLM Args: {effective}")
    faults = Faults(_facts(effective, name, port))
    base = load(effective, faults)
    engine = Engine(name, effective, Harmony() if base.is_gpt_oss else Plain(), faults)
    listen.arm_death(engine)
    listen.server(application(engine)).run(sockets=[bound])


@click.command("serve", context_settings={"help_option_names": ["--help"]})
@click.argument("model", type=str)
@click_options(__version__)
@click.pass_context
def serve(context: click.Context, /, model: str, **values: Any) -> None:
    """Run an OpenAI API compatible server for MODEL, a folder or a repository in the hub's cache."""
    typed = {name for name in values if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    options, given = _command_line(values, typed)
    options["model"] = model
    merged = update_llm_args_with_extra_options(options, values["extra_llm_api_options"], typed=given)
    merged = _set_by_path(merged, values.get("set", ()))
    run(values.get("served_model_name") or model_name(model), values["host"], values["port"], merged)


class _ServeByDefault(click.Group):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["serve", *args]
        return super().parse_args(ctx, args)


main = _ServeByDefault("trtllm-serve", commands={"serve": serve})


def entry() -> None:
    """Start from the shell; SIGTERM and SIGINT end it with 0 at any time, as PID 1 too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, exit_at_once)
    log.banner()
    main(prog_name="trtllm-serve")


if __name__ == "__main__":
    entry()
