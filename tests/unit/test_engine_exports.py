"""What an image accepts: walked inside it with the engine's own classes, kept by digest, and then checked exactly."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import rackwright_lab
from rackwright.cli.engine_data import walked
from rackwright.cli.main import main
from rackwright.concerns.options import WantedOptions, walk_script
from rackwright.concerns.options.concern import image_program
from rackwright.engines.exported import file_of, write
from rackwright.engines.host import check_host
from rackwright.messages import SettingsError
from rackwright.settings.host_settings import SITE, HostSettings
from rackwright_engines.finding import Level
from rackwright_engines.key_path import dotted
from rackwright_engines.quick_yaml import load_yaml
from rackwright_lab.standins.rootfs import SHIMS, put_package
from tests import texts
from tests.unit.test_endpoint_changes import WANTED

Asked = Callable[[WantedOptions], str]
ONE, OTHER = (f"sha256:{letter * 64}" for letter in "ab")
MODEL = {"repository": "a/b", "mount": "/models/b"}
PYDANTIC = """
import enum
from pathlib import Path
from typing import Annotated, List, Literal, Optional, Union
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PositiveInt

class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
class Policy(str, enum.Enum):
    FIRST = "FIRST"
    LAST = "LAST"
class Decode(Strict):
    mode: Literal["decode"] = "decode"
    sizes: Optional[List[int]] = None
class Encode(Strict):
    mode: Literal["encode"] = "encode"
    tokens: int = Field(default=1, gt=0)
class Base(Strict):
    max_draft_len: Optional[PositiveInt] = None
    model: Optional[Union[str, Path]] = Field(default=None, validation_alias=AliasChoices("model", "model_dir"))
class Eagle(Base):
    decoding_type: Literal["Eagle"] = "Eagle"
class Eagle3(Eagle):
    decoding_type: Literal["Eagle3"] = "Eagle3"
class Free(BaseModel):
    known: int = 1
class TorchLlmArgs(Strict):
    model: str
    policy: Policy = Policy.FIRST
    fraction: Annotated[float, Field(ge=0, le=1)] = 0.9
    graphs: Optional[Annotated[Union[Decode, Encode], Field(discriminator="mode")]] = Field(default_factory=Decode)
    speculative_config: Optional[Annotated[Union[Eagle, Eagle3], Field(discriminator="decoding_type")]] = None
    free: Free = Field(default_factory=Free)
    anything: object = None
"""


class Image:
    """An image's Python: packages in a folder, and a `docker` that runs what it is handed there."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.docker(f'case $1 in rm | inspect) exit 0 ;; esac; for word; do :; done; exec {sys.executable} - "$word"')

    def docker(self, command: str) -> None:
        (self.bin / "docker").write_text(f"#!/bin/sh\n{command}\n")
        (self.bin / "docker").chmod(0o755)

    def install(self, engine: str) -> None:
        put_package(self.site, "engine", "common", *([engine] if engine in SHIMS else []))
        if engine == "tensorrt-llm":
            (self.site / "tensorrt_llm").symlink_to(Path(rackwright_lab.__file__).parent / "standins/engine")

    def made_up(self, text: str) -> None:
        folder = self.site / "tensorrt_llm/llmapi"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").write_text('__version__ = "1.9.0"\n')
        (folder / "__init__.py").touch()
        (folder / "llm_args.py").write_text(text)

    def run(self, engine: str, version: str = "1.4.0rc1", script: Asked = walk_script) -> tuple[int, str, str]:
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.site),
            "TRTLLM_STANDIN_VERSION": version,
        }
        text = script(WantedOptions(WANTED, engine, gpus=("GPU-1",)))
        done = subprocess.run(
            ["sh", "-c", text], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def walk(self, engine: str, version: str = "1.4.0rc1") -> dict[str, Any]:
        status, output, errors = self.run(engine, version)
        assert (status, output.count("\n")) == (0, 1), errors
        found: dict[str, Any] = json.loads(output)
        return found


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def problem_texts(site: Path, level: Level = Level.REFUSE, **values: Any) -> list[str]:
    settings = HostSettings.model_validate({"model": MODEL, "bind": "127.0.0.1", **values}, context={SITE: site})
    return [f"{dotted(one.path)}: {one.text}" for one in check_host(settings) if one.level is level]


# -- what is walked


def test_pydantic_s_classes_become_sections_unions_bounds_and_names(image: Image) -> None:
    image.made_up(PYDANTIC)
    found = image.walk("tensorrt-llm")
    root = found["sections"]["TorchLlmArgs"]
    assert (found["version"], found["decoding"], found["lenient"]) == ("1.9.0", "discriminated", ["Free"])
    assert root == {
        "model": {"type": "str", "given": True},
        "policy": {"type": "str", "values": ["FIRST", "LAST"], "default": "FIRST"},
        "fraction": {"type": "float", "ge": 0, "le": 1, "default": 0.9},
        "graphs": {"type": "union of graphs?"},
        "speculative_config": {"type": "union of speculative_config?", "default": None},
        "free": {"type": "Free"},
        "anything": {"type": "any", "default": None},
    }
    assert found["unions"]["union of graphs"] == {
        "tag": "mode",
        "kinds": {"decode": "Decode", "encode": "Encode"},
        "otherwise": "decode",
    }
    draft = found["sections"]["Eagle"]
    assert draft["max_draft_len"] == {"type": "int?", "gt": 0, "default": None}
    assert draft["model"] == draft["model_dir"]


SERVE = """
import no_such_module
def serve(llm_args, other):
    cluster = llm_args.pop("disagg_cluster", None)
    key = llm_args.pop("model"), other.pop("unrelated"), llm_args.pop(cluster)
"""
MERGE = """
def update_llm_args_with_extra_dict(llm_args, llm_args_dict):
    llm_args_dict["revision"] = llm_args_dict.pop("hf_revision", None)
def another(llm_args):
    llm_args.pop("elsewhere")
"""


def test_what_trtllm_serve_takes_out_of_the_file_itself_is_read_in_its_text(image: Image) -> None:
    image.made_up(PYDANTIC + MERGE)
    commands = image.site / "tensorrt_llm/commands"
    commands.mkdir()
    (commands / "__init__.py").touch()
    (commands / "serve.py").write_text(SERVE)
    root = image.walk("tensorrt-llm")["sections"]["TorchLlmArgs"]
    assert (root["disagg_cluster"], root["hf_revision"]) == ({"type": "any"}, {"type": "any"})
    assert root["model"] == {"type": "str", "given": True}
    assert not {"unrelated", "elsewhere"} & set(root)


@pytest.mark.parametrize(("engine", "key"), [("vllm", "max-num-seqs"), ("sglang", "context-length")])
def test_a_command_line_becomes_keys_with_all_their_names(image: Image, engine: str, key: str) -> None:
    image.install(engine)
    found = image.walk(engine)["sections"]["Serve"]
    assert found[key]["type"] == "int?"
    assert found["kv-cache-dtype"]["values"][0] == "auto"
    tensor = found["tensor-parallel-size" if engine == "vllm" else "tp-size"]
    assert tensor["names"] == (["-tp"] if engine == "vllm" else ["--tensor-parallel-size"])


def test_an_engine_that_is_not_there_says_why(image: Image) -> None:
    why = image.walk("vllm")["why"]
    assert why.startswith("ImportError: vllm.utils.argparse_utils:FlexibleArgumentParser: ModuleNotFoundError")


def test_a_container_that_does_not_start_says_why(image: Image) -> None:
    image.docker("case $1 in rm | inspect) exit 0 ;; esac; echo 'no such image' >&2; exit 125")
    status, out, errors = image.run("vllm")
    assert (status, out) == (125, "")
    assert "with 125: no such image" in errors


@pytest.mark.parametrize(
    ("answer", "errors", "why"),
    [
        ('{"why": "no engine"}', "", "no engine"),
        ('{"version": "1', "", "its answer could not be read"),
        ('{"version": "1.0", "sections": {}}', "", "its answer could not be read"),
        ("", "docker run ended with 125", "docker run ended with 125"),
        ("[]", "", "its answer could not be read"),
    ],
)
def test_what_is_no_answer_says_so(answer: str, errors: str, why: str) -> None:
    assert walked("r/x:1", ONE, "vllm", answer, errors).why == why


def test_the_program_s_own_text_is_what_travels() -> None:
    script = walk_script(WantedOptions(WANTED, "vllm", gpus=("GPU-1",)))
    assert base64.b64encode(image_program("walk_options").encode()).decode() in script
    assert "--network none" in script
    assert "--mount" not in script


# -- what is checked with it


@pytest.fixture
def site(image: Image, tmp_path: Path) -> Path:
    """Make a site with what a private build accepts, and no public version does."""
    image.made_up(PYDANTIC)
    write(tmp_path, "r/private:mine", ONE, "tensorrt-llm", image.walk("tensorrt-llm"))
    return tmp_path


MINE: dict[str, Any] = {"image": "r/private:mine", "engine_kind": "tensorrt-llm"}


def test_the_digest_s_own_options_are_checked_exactly_text(site: Path) -> None:
    options = {"policy": "FIRST", "graphs": {"mode": "encode", "tokens": 3}, "fraction": 0.5}
    assert problem_texts(site, **MINE, image_digest=ONE, engine=options) == []
    assert problem_texts(site, Level.WARN, **MINE, image_digest=ONE, engine=options) == []
    wrong = {"polcy": "FIRST", "fraction": 2, "graphs": {"tokens": 3}, "kv_cache_config": {}}
    unknown = texts.UNKNOWN_OPTION.format(engine="TensorRT-LLM mine")
    assert [
        one.split(" (")[0].split(";")[0] for one in problem_texts(site, **MINE, image_digest=ONE, engine=wrong)
    ] == [
        f"engine.polcy: {unknown}",
        "engine.fraction: must be at least 0 and at most 1, not 2",
        f"engine.graphs.tokens: {unknown} with this mode",
        f"engine.kv_cache_config: {unknown}: it is gone since 1.4.0rc1",
    ]


def test_without_a_digest_the_last_export_of_the_same_image_counts(site: Path) -> None:
    assert problem_texts(site, Level.WARN, **MINE, engine={"policy": "FIRST"}) == []
    assert problem_texts(site, Level.WARN, **{**MINE, "image": "r/private:other"}, engine={"policy": "FIRST"}) != []


def test_another_digest_or_another_lock_is_not_that_image(site: Path) -> None:
    assert problem_texts(site, Level.WARN, **MINE, image_digest=OTHER, engine={"policy": "FIRST"}) != []
    lock = site / "rackwright.lock.yml"
    lock.write_text(yaml.safe_dump({"version": 1, "images": {"r/private:mine": OTHER}}))
    assert problem_texts(site, Level.WARN, **MINE, engine={"policy": "FIRST"}) != []
    lock.write_text(yaml.safe_dump({"version": 1, "images": {"r/private:mine": ONE}}))
    assert problem_texts(site, Level.WARN, **MINE, engine={"policy": "FIRST"}) == []


def test_an_export_that_is_written_anew_counts_at_once(site: Path) -> None:
    path = file_of(site, ONE)
    document = load_yaml(path.read_text())
    del document["sections"]["TorchLlmArgs"]["policy"]
    path.write_text(yaml.safe_dump(document))
    os.utime(path, (1, 1))
    assert problem_texts(site, **MINE, engine={"policy": "FIRST"}) != []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "is not an export of an image's options"),
        ("[]", "is not an export"),
        ("image: x\nversion: 1\nsections: 3", "is spoilt"),
    ],
)
def test_a_spoilt_export_is_named_with_the_way_out(site: Path, text: str, words: str) -> None:
    file_of(site, ONE).write_text(text if "version" not in text else f"{text}\nengine: tensorrt-llm")
    with pytest.raises(SettingsError, match=words) as raised:
        problem_texts(site, **MINE, image_digest=ONE)
    assert str(file_of(site, ONE)) in str(raised.value)
    assert "rackwright engine-data INVENTORY" in str(raised.value)


@pytest.mark.parametrize(
    ("engine", "good", "bad"),
    [
        ("vllm", {"max-num-seqs": 8, "tensor_parallel_size": 1, "no-enable-prefix-caching": True}, {"max-num-sqes": 8}),
        ("sglang", {"context-length": 8192, "tp-size": 1}, {"context-lenght": 1}),
    ],
)
def test_a_stand_in_s_export_is_checked_like_any_other(
    image: Image, tmp_path: Path, engine: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    image.install(engine)
    write(tmp_path, "r/private:mine", ONE, engine, image.walk(engine))
    values: dict[str, Any] = {"image": "r/private:mine", "engine_kind": engine, "image_digest": ONE}
    assert problem_texts(tmp_path, **values, engine=good) == []
    (refusal,) = problem_texts(tmp_path, **values, engine=bad)
    assert "does not know this key" in refusal


@pytest.mark.parametrize("version", ["1.1.0rc0", "1.2.0rc6", "1.4.0rc1"])
def test_tensorrt_llm_s_stand_in_accepts_the_same_walked_as_asked(image: Image, tmp_path: Path, version: str) -> None:
    image.install("tensorrt-llm")
    write(tmp_path, "r/private:mine", ONE, "tensorrt-llm", image.walk("tensorrt-llm", version))
    draft = {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model_dir": "/m/d"}
    good = {"kv_cache_config": {"enable_block_reuse": False}, "speculative_config": draft, "max_batch_size": 4}
    assert (
        problem_texts(tmp_path, **MINE, draft={"repository": "a/d", "mount": "/m/d"}, image_digest=ONE, engine=good)
        == []
    )
    assert (
        problem_texts(
            tmp_path,
            **MINE,
            draft={"repository": "a/d", "mount": "/m/d"},
            image_digest=ONE,
            engine={"kv_cache_config": {"enable_block": False}},
        )
        != []
    )


def test_the_verb_is_one_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["engine-data", "--help"])
    assert "INVENTORY" in capsys.readouterr().out


def test_it_is_kept_whole_and_under_the_digest(site: Path) -> None:
    path = file_of(site, ONE)
    assert path == site / "engine-data" / f"sha256-{'a' * 64}.yml"
    document = load_yaml(path.read_text())
    assert (document["image"], document["digest"], document["engine"]) == ("r/private:mine", ONE, "tensorrt-llm")
    assert WANTED.spec.image.rpartition("@")[2].startswith("sha256:")
