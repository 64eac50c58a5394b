"""The data that `scripts/engine-schema` makes from a source tree, shown on a small made-up one."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest

from rackwright.messages import SettingsError
from rackwright_engines.quick_yaml import load_yaml
from scripts.engine_data.trtllm import as_file, difference, line_of, line_of_schema, read_source
from tests.unit.test_engine_schema_files import schema

SCRIPT = Path(__file__).parents[2] / "scripts" / "engine-schema"
SOURCE = '''
import torch_that_is_not_installed
Speed = Literal["slow", "fast"]

class StrictBaseModel(BaseModel):
    class Config:
        extra = "forbid"

class Policy(StrEnum, metaclass=Meta):
    FIRST = "FIRST"
    LAST = "LAST"

class CacheConfig(StrictBaseModel):
    """Made up."""
    reuse: bool = Field(default=True, description="Made up.")
    fraction: Optional[float] = Field(default=0.9, ge=0, le=1)
    windows: Optional[List[PositiveInt]] = Field(default=None, min_length=1)
    speed: Speed = "slow"
    rounds: NonNegativeInt = 3
    _seen: int = PrivateAttr(default=0)
    kind: ClassVar[str] = "x"

    def changed(self) -> bool:
        note: int = 1
        return bool(note)

class DecodingBaseConfig(StrictBaseModel):
    max_draft_len: Optional[NonNegativeInt] = None
    model_path: Optional[Union[str, Path]] = Field(
        default=None, validation_alias=AliasChoices("model_path", "model_dir"))

class NeuralConfig(DecodingBaseConfig):
    decoding_type: Literal["Neural"] = Field(default="Neural")
    layers: Optional[Set[int]] = None

class LargerNeuralConfig(NeuralConfig):
    decoding_type: Literal["Larger"] = "Larger"
    drafter: object

SpeculativeConfig: TypeAlias = Annotated[
    Union[NeuralConfig, LargerNeuralConfig], Field(discriminator="decoding_type")]

class BaseLlmArgs(StrictBaseModel):
    model_config = ConfigDict(extra="forbid")
    model: Union[str, Path] = Field(description="Made up.")
    cache_config: CacheConfig = Field(default_factory=CacheConfig)
    speculative_config: Optional[SpeculativeConfig] = Field(default=None)
    overrides: Dict[str, str] | None = None
    loader: Union[object, str] = None

class TorchLlmArgs(BaseLlmArgs):
    policy: Policy = Field(Policy.FIRST)
    size: PositiveInt = Field(default=1, lt=9)
    anything: Dict[str, Any] = Field(...)
'''
EXPECTED = """\
versions: [9.9.0rc1]
decoding: discriminated
sections:
  TorchLlmArgs:
    model: {type: str}
    cache_config: {type: CacheConfig}
    speculative_config: {type: 'SpeculativeConfig?', default: null}
    overrides: {type: 'dict[str,str]?', default: null}
    loader: {type: any, default: null}
    policy: {type: str, values: [FIRST, LAST], default: FIRST}
    size: {type: int, gt: 0, default: 1, lt: 9}
    anything: {type: mapping}
  CacheConfig:
    reuse: {type: bool, default: true}
    fraction: {type: 'float?', default: 0.9, ge: 0, le: 1}
    windows: {type: 'list[int]?', default: null}
    speed: {type: str, values: [slow, fast], default: slow}
    rounds: {type: int, ge: 0, default: 3}
  NeuralConfig:
    _extends: DecodingBaseConfig
    layers: {type: 'set[int]?', default: null}
  LargerNeuralConfig:
    _extends: DecodingBaseConfig
    layers: {type: 'set[int]?', default: null}
    drafter: {type: any}
  DecodingBaseConfig:
    max_draft_len: {type: 'int?', ge: 0, default: null}
    model_path: {type: 'str?', default: null}
    model_dir: {type: 'str?', default: null}
unions:
  SpeculativeConfig:
    tag: decoding_type
    kinds: {Neural: NeuralConfig, Larger: LargerNeuralConfig}
"""


OLDER = """
class StrictBaseModel(BaseModel):
    pass

class Shape(Enum):
    WIDE = 0

class Pace(StrEnum):
    SLOW = "slow"

class DecodingBaseConfig(StrictBaseModel):
    max_draft_len: Optional[int] = None

    @classmethod
    def from_dict(cls, data):
        kinds = {"Neural": NeuralConfig, "UserProvided": OwnConfig}
        return kinds[data.pop("decoding_type")](**data)

class NeuralConfig(DecodingBaseConfig):
    decoding_type: ClassVar[str] = "Neural"

class OwnConfig(DecodingBaseConfig):
    drafter: object
    decoding_type: ClassVar[str] = "User_Provided"

SpeculativeConfig: TypeAlias = Optional[Union[NeuralConfig, OwnConfig]]

class TorchLlmArgs(StrictBaseModel):
    speculative_config: SpeculativeConfig = Field(default=None)
    cache: int = Field(default=1024**3 + 2 * 8)
    shape: Union[str, Shape] = Field(default=Shape.WIDE)
    pace: Pace = Field(default=Pace.SLOW)
    session: Optional[object] = Field(default=None, alias="_session")
    count: int = Field(default=limits.most())
"""
OLDER_EXPECTED = """\
versions: [1.1.0]
decoding: typed
sections:
  TorchLlmArgs:
    speculative_config: {type: 'SpeculativeConfig?', default: null}
    cache: {type: int, default: 1073741840}
    shape: {type: any}
    pace: {type: str, values: [slow], default: slow}
    count: {type: int}
  NeuralConfig:
    _extends: DecodingBaseConfig
  OwnConfig:
    _extends: DecodingBaseConfig
    drafter: {type: any}
  DecodingBaseConfig:
    max_draft_len: {type: 'int?', default: null}
unions:
  SpeculativeConfig:
    tag: decoding_type
    kinds: {Neural: NeuralConfig, UserProvided: OwnConfig}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a source tree with one file."""
    folder = tmp_path / "tensorrt_llm" / "llmapi"
    folder.mkdir(parents=True)
    (folder / "llm_args.py").write_text(SOURCE)
    return tmp_path


def test_a_line_is_read_from_the_classes_without_running_them(tree: Path) -> None:
    text = as_file(line_of(read_source(tree), "9.9.0rc1"))
    assert load_yaml(text) == load_yaml(EXPECTED)
    assert text == EXPECTED


def test_versions_that_dispatch_by_themselves_are_read_by_their_own_table(tree: Path) -> None:
    (tree / "tensorrt_llm/llmapi/llm_args.py").write_text(OLDER)
    assert as_file(line_of(read_source(tree), "1.1.0")) == OLDER_EXPECTED


def test_a_wrong_key_that_is_set_as_an_attribute_is_known_by_the_classs_own_init(tree: Path) -> None:
    source = "class EagleDecodingConfig(Base):\n    def __init__(self, **kw):\n        setattr(self, 'a', kw)\n"
    (tree / "tensorrt_llm/llmapi/llm_args.py").write_text(OLDER + source)
    assert line_of(read_source(tree), "1.1.0")["decoding"] == "attributes"


def test_bounds_that_only_validators_know_are_not_lost() -> None:
    plain = {"sections": {"TorchLlmArgs": {"stream_interval": {"type": "int", "default": 1}, "dtype": {"type": "int"}}}}
    changed = difference(plain, "1.2.0rc6")["add"]
    assert changed == {"TorchLlmArgs": {"dtype": {"type": "int"}}}


def test_a_line_as_it_differs_from_another_one(tree: Path) -> None:
    changed = difference(line_of(read_source(tree), "9.9.0rc1"), "1.4.0rc1")
    assert changed["base"] == "1.4.0rc1"
    assert changed["versions"] == ["9.9.0rc1"]
    assert "size" in changed["add"]["TorchLlmArgs"]
    assert "max_draft_len" not in changed["add"]["DecodingBaseConfig"], "unchanged keys are the base's"
    assert "tensor_parallel_size" in changed["remove"]["TorchLlmArgs"]


def test_a_folder_that_is_no_source_tree(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"next: .* TensorRT-LLM source"):
        read_source(tmp_path)


def test_a_version_before_the_pytorch_backend(tree: Path) -> None:
    (tree / "tensorrt_llm/llmapi/llm_args.py").write_text("class LlmArgs:\n    pass\n")
    with pytest.raises(SettingsError, match="has no class TorchLlmArgs"):
        read_source(tree)


def test_the_script_prints_the_file(tree: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tree, "9.9.0rc1"], capture_output=True, text=True, check=True)
    assert done.stdout == EXPECTED
    wrong = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "none", "9"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("engine-schema: ")


def test_the_documentation_s_page_of_the_source_is_as_good_as_the_source(tmp_path: Path) -> None:
    """Each class and method has a link back, and everything else is marked up."""
    (tmp_path / "tensorrt_llm/llmapi").mkdir(parents=True)
    (tmp_path / "tensorrt_llm/llmapi/llm_args.py").write_text(SOURCE)
    link = '<div class="viewcode-block"><a class="viewcode-back" href="x.html">[docs]</a>'
    marked = re.sub(r"^( *)(class|def) ", rf"{link}\n\1<span>\2</span> ", escape(SOURCE), flags=re.MULTILINE)
    page = tmp_path / "llm_args.html"
    page.write_text(f'<h1>Source code for llm_args</h1><div class="highlight"><pre>{marked}</pre></div><p>(c) 2026</p>')
    assert line_of(read_source(page), "1") == line_of(read_source(tmp_path), "1")


def test_a_page_that_shows_no_python_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "llm_args.html"
    page.write_text("<pre>404: not here</pre>")
    with pytest.raises(SettingsError, match="cannot be parsed"):
        read_source(page)


def test_a_version_s_own_schema_is_a_source_as_well(tmp_path: Path) -> None:
    file = tmp_path / "trtllm-serve-config.schema.json"
    file.write_text(schema())
    data = load_yaml(as_file(line_of_schema(file, "1.9.0rc2")))
    assert data["versions"] == ["1.9.0rc2"]
    assert data["sections"]["Gemm"] == {"allowed_backends": {"type": "list[str]", "values": ["cutlass", "cublaslt"]}}
    assert data["unions"]["union of sparse_attention_config"]["tag"] == "algorithm"
    done = subprocess.run([sys.executable, SCRIPT, file, "1.9.0rc2"], capture_output=True, text=True, check=False)
    assert (done.returncode, "nvfp4_gemm_config" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("text", [schema(), "{}", "\udcff"], ids=["another branch's", "no schema", "no text"])
def test_the_schema_of_another_version_is_not_a_source(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SettingsError):
        line_of_schema(file, "1.9.0rc3")
