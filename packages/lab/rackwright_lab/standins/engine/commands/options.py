"""The command line's options as data, by version; click turns anything else into a usage error (exit 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ..versions import within

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """One option: its spellings, what it takes, and the engine option that it sets (empty: none)."""

    names: tuple[str, ...]
    kind: Any = str
    default: Any = None
    sets: str = ""
    since: str = ""
    gone: str = ""
    many: bool = False

    @property
    def variable(self) -> str:
        """Return the name under which click hands the value over: that of the first spelling."""
        return self.names[0].removeprefix("--")


_LEVELS = click.Choice(["verbose", "info", "warning", "error", "internal_error", "trace", "debug"])
_FLAG = bool

OPTIONS = (
    Option(("--host",), default="localhost"),
    Option(("--port",), int, 8000),
    Option(
        ("--backend",),
        click.Choice(["pytorch", "tensorrt", "trt", "_autodeploy"]),
        "pytorch",
        gone="1.3.0rc27",
    ),
    Option(("--backend",), click.Choice(["pytorch", "_autodeploy"]), "pytorch", since="1.3.0rc27"),
    Option(("--tp_size", "--tensor_parallel_size"), int, 1, "tensor_parallel_size"),
    Option(("--pp_size", "--pipeline_parallel_size"), int, 1, "pipeline_parallel_size"),
    Option(("--cp_size", "--context_parallel_size"), int, 1, "context_parallel_size", since="1.2.0rc0"),
    Option(("--ep_size", "--moe_expert_parallel_size"), int, None, "moe_expert_parallel_size"),
    Option(("--cluster_size", "--moe_cluster_parallel_size"), int, None, "moe_cluster_parallel_size"),
    Option(("--gpus_per_node",), int, None, "gpus_per_node"),
    Option(("--max_batch_size",), int, 2048, "max_batch_size"),
    Option(("--max_num_tokens",), int, 8192, "max_num_tokens"),
    Option(("--max_seq_len",), int, None, "max_seq_len"),
    Option(("--max_beam_width",), int, 1, "max_beam_width"),
    Option(("--kv_cache_free_gpu_memory_fraction", "--free_gpu_memory_fraction"), float, 0.9),
    Option(("--num_postprocess_workers",), int, 0, "num_postprocess_workers"),
    Option(("--trust_remote_code",), _FLAG, False, "trust_remote_code"),
    Option(("--revision", "--hf_revision"), str, None, "revision", since="1.3.0rc27"),
    Option(("--revision",), str, None, "revision", since="1.2.0rc6", gone="1.3.0rc27"),
    Option(("--extra_llm_api_options", "--config"), since="1.2.0rc6"),
    Option(("--extra_llm_api_options",), gone="1.2.0rc6"),
    Option(("--reasoning_parser",), sets="reasoning_parser"),
    Option(("--tool_parser",), since="1.2.0rc0"),
    Option(("--chat_template",), since="1.2.0rc0"),
    Option(("--custom_tokenizer",), sets="custom_tokenizer", since="1.2.0rc6"),
    Option(("--tokenizer",), sets="tokenizer"),
    Option(("--metadata_server_config_file",)),
    Option(("--server_role",)),
    Option(("--disagg_cluster_uri",), since="1.2.0rc0"),
    Option(("--otlp_traces_endpoint",), sets="otlp_traces_endpoint", since="1.2.0rc0"),
    Option(
        ("--fail_fast_on_attention_window_too_large",),
        _FLAG,
        False,
        "fail_fast_on_attention_window_too_large",
    ),
    Option(("--enable_chunked_prefill",), _FLAG, False, "enable_chunked_prefill", since="1.2.0rc0"),
    Option(("--media_io_kwargs",), since="1.2.0rc6"),
    Option(("--kv_cache_dtype",), since="1.3.0rc27"),
    Option(("--enable_attention_dp",), _FLAG, False, "enable_attention_dp", since="1.3.0rc27"),
    Option(("--served_model_name",), since="1.3.0rc27"),
    Option(("--set",), click.UNPROCESSED, since="1.4.0rc1", many=True),
    Option(("--log_level",), _LEVELS, "info"),
)


def _known(version: str) -> list[Option]:
    return [option for option in OPTIONS if within(version, option.since, option.gone)]


def engine_names(version: str) -> dict[str, str]:
    """Return click's variable name to engine option, for options that set one."""
    return {option.variable: option.sets for option in _known(version) if option.sets}


def click_options(version: str) -> Callable[[Function], Function]:
    """Return a decorator that gives a click command the options of a version."""

    def decorate(function: Function) -> Function:
        for option in reversed(_known(version)):
            flag = {"is_flag": True} if option.kind is bool else {"type": option.kind, "multiple": option.many}
            function = click.option(*option.names, option.variable, default=option.default, **flag)(function)
        return function

    return decorate
