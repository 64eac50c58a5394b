"""`scripts/engine-data` finds values that lie apart from the option classes, shown on small made-up sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.engine_data import sglang, vllm

VLLM = {
    "vllm/engine/arg_utils.py": """
def parse_reasoning_parser(value):
    return value

class EngineArgs:
    replicas_backend: str = ModelConfig.replicas_backend

    @staticmethod
    def add_cli_args(parser):
        model_kwargs = get_kwargs(ModelConfig)
        parser.add_argument("--dtype", **model_kwargs["dtype"])
        parser.add_argument("--cache-dtype", **model_kwargs["cache_dtype"])
        parser.add_argument("--quantization", **model_kwargs["quantization"])
        parser.add_argument("--load-format", **model_kwargs["load_format"])
        parser.add_argument("--attention-backend", **model_kwargs["attention_backend"])
        parser.add_argument("--reasoning-parser", **model_kwargs["reasoning_parser"])
        kernel_kwargs = model_kwargs["kernel"]
        kernel_kwargs["type"] = lambda s: s.lower().replace("-", "_")
        parser.add_argument("--kernel", **kernel_kwargs)
        parser.add_argument("--replicas-backend", type=str, default="two")
        parser.add_argument("--level", **model_kwargs["level"])
        parser.add_argument("--mode", **model_kwargs["mode"])
""",
    "vllm/config/model.py": """
Dtypes = Literal["auto", "half"]

class Level(IntEnum):
    O0 = 0
    O1 = 1

class Mode(enum.IntEnum):
    NONE = 0
    ALL = 1

@config
class ModelConfig:
    dtype: Dtypes | torch.dtype = "auto"
    cache_dtype: Dtypes | str = "auto"
    quantization: me_quant.Methods | str | None = None
    load_format: str = "auto"
    attention_backend: BackendEnum | None = None
    reasoning_parser: str = ""
    kernel: Literal["fast_one", "slow"] = "slow"
    replicas_backend: Literal["one", "two"] = "two"
    level: Level = Level.O1
    mode: Mode = None

    @field_validator("kernel", mode="before")
    def _normalize_kernel(cls, value):
        return value.lower().replace("-", "_")

    @field_validator("mode", mode="before")
    def validate_mode(cls, value):
        name = value.upper()
        return Mode[name]

    @field_validator("load_format")
    def _lowercase_load_format(cls, value):
        return value.lower()

    @field_validator("attention_backend")
    def validate_backend(cls, value):
        if value.lower() == "auto":
            return None
        return BackendEnum[value.upper()]
""",
    "vllm/model_executor/layers/quantization/__init__.py": 'Methods = Literal["fp8", "awq"]',
    "vllm/model_executor/model_loader/__init__.py": 'LoadFormats = Literal["auto", "pt"]',
    "vllm/v1/attention/backends/registry.py": """
class BackendEnum(Enum, metaclass=Meta):
    FAST = "a.Fast"
    SLOW = "a.Slow"
""",
    "vllm/entrypoints/cli_args.py": """
class FrontendArgs:
    tool_call_parser: str | None = None
    tool_parser_plugin: str = ""

def load_config_file(path):
    return "--no-"
""",
    "vllm/tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"second": ("file", "Class")}',
    "vllm/tool_parsers/first.py": """
@ToolParserManager.register_module(["first", "other"])
class First:
    pass
""",
    "vllm/reasoning/thought.py": """
@ReasoningParserManager.register_module("thought")
class Thought:
    pass
""",
}
EXPECTED: dict[str, dict[str, Any]] = {
    "dtype": {"type": "str", "values": ["auto", "half"], "default": "auto"},
    "cache-dtype": {"type": "str", "values": ["auto", "half"], "more": True, "default": "auto"},
    "quantization": {"type": "str?", "values": ["fp8", "awq"], "more": True, "default": None},
    "load-format": {"type": "str", "values": ["auto", "pt"], "more": True, "fold": "lower", "default": "auto"},
    "attention-backend": {"type": "str?", "values": ["FAST", "SLOW", "AUTO"], "fold": "upper", "default": None},
    "reasoning-parser": {"type": "str", "values": ["thought", "none"], "default": ""},
    "tool-call-parser": {"type": "str?", "values": ["first", "other", "second"], "more": True, "default": None},
    "kernel": {"type": "str", "values": ["fast_one", "slow"], "fold": "snake", "default": "slow"},
    "replicas-backend": {"type": "str", "values": ["one", "two"], "default": "two"},
    "level": {"type": "int?", "values": ["0", "1"]},
    "mode": {"type": "str?", "values": ["NONE", "ALL", "0", "1"], "fold": "upper", "default": None},
}
SGLANG = {
    "sglang/srt/server_args.py": """
SAMPLERS = set(BUILT_IN)

def _parser_choices():
    return list(PARSERS)

class ServerArgs:
    speculative_algorithm: A[Optional[str], "help"] = None
    strategy: A[str, Arg(help="x", choices=["one", "two"])] = "one"
    graph: A[Optional[Literal["full", "off"]], Arg(choices=Backend.ALL, type_parser=parse)] = None

    @staticmethod
    def add_cli_args(parser):
        sampling_choices = set(SAMPLERS)
        parser.add_argument("--sampling-backend", type=str, choices=sampling_choices)
        choices = _parser_choices()
        parser.add_argument("--tool-call-parser", type=str, choices=["auto"] + choices)
        parser.add_argument("--reasoning-parser", type=str, choices=list(Reasoner.DetectorMap.keys()))
        parser.add_argument("--old-strategy", action=DeprecatedAliasStoreAction, new_flag="--strategy")
""",
    "sglang/srt/arg_groups/choices.py": 'BUILT_IN = frozenset({"fast", "plain"})',
    "sglang/srt/function_call/parser_names.py": 'PARSERS = ["gpt-oss", "glm"]',
    "sglang/srt/parser/reasoning_parser.py": """
class Reasoner:
    DetectorMap: Dict[str, type] = {"glm": Glm, "qwen": Qwen}
""",
    "sglang/srt/speculative/spec_info.py": """
class SpeculativeAlgorithm(Enum):
    EAGLE = auto()
    NONE = auto()
""",
    "sglang/srt/plugins/__init__.py": "",
}
SGLANG_VALUES: dict[str, tuple[list[str], bool]] = {
    "speculative-algorithm": (["EAGLE", "NEXTN", "NONE"], True),
    "strategy": (["one", "two"], False),
    "graph": (["full", "off"], False),
    "sampling-backend": (["fast", "plain"], True),
    "tool-call-parser": (["auto", "glm", "gpt-oss"], True),
    "reasoning-parser": (["glm", "qwen"], True),
    "old-strategy": (["one", "two"], True),
}


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("option", EXPECTED)
def test_vllm_s_values_come_from_wherever_they_are(tmp_path: Path, option: str) -> None:
    found = vllm.line_of(vllm.read(tree(tmp_path, VLLM)), "9.9.9")["sections"]["Serve"][option]
    assert {key: value for key, value in found.items() if key != "in"} == EXPECTED[option]


@pytest.mark.parametrize("option", SGLANG_VALUES)
def test_sglang_s_values_come_from_wherever_they_are(tmp_path: Path, option: str) -> None:
    found = sglang.line_of(sglang.read(tree(tmp_path, SGLANG)), "9.9.9")["sections"]["Server"][option]
    assert (found["values"], found.get("more", False)) == SGLANG_VALUES[option]
