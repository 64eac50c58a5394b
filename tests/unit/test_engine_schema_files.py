"""The JSON Schema that TensorRT-LLM's images ship: read out of the image, made into a line, and checked with."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli import engine_data
from rackwright.concerns.options import WantedOptions, schema_script
from rackwright.engines.exported import file_of, write
from rackwright_engines.finding import Level, refused
from rackwright_engines.options.check import check_options
from rackwright_engines.options.json_schema import SpoiltSchemaError, data_of, version_of
from rackwright_engines.options.schema import line_of
from rackwright_engines.quick_yaml import load_yaml
from tests.unit.test_endpoint_changes import WANTED
from tests.unit.test_engine_exports import MINE, ONE, Image, image, problem_texts

__all__ = ["image"]

TRT = "tensorrt-llm"
NULL = {"type": "null"}
TAKEN = {
    "disagg_cluster": {"cluster_uri": "http://10.0.0.1:8000"},
    "internal_request_auth_key": "x",
    "allow_request_chat_template": True,
    "hf_revision": "main",
}


def ref(name: str, **more: Any) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}", **more}


def optional(*kinds: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"anyOf": [*kinds, NULL], "default": None, **more}


def strict(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def kind(tag: str, name: str, **properties: Any) -> dict[str, Any]:
    return strict(**{tag: {"const": name, "default": name, "type": "string"}}, **properties)


def tagged(tag: str, **kinds: str) -> dict[str, Any]:
    mapping = {value: f"#/$defs/{name}" for value, name in kinds.items()}
    return {"discriminator": {"mapping": mapping, "propertyName": tag}, "oneOf": [ref(name) for name in kinds.values()]}


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://nvidia.github.io/TensorRT-LLM/1.9.0rc2/_static/schemas/trtllm-serve-config.schema.json",
    "$defs": {
        "Policy": {"enum": ["FIRST", "LAST"], "type": "string"},
        "Decode": kind("mode", "decode", batch_sizes=optional({"type": "array", "items": {"type": "integer"}})),
        "Encode": kind("mode", "encode", num_tokens={"type": "integer", "exclusiveMinimum": 0, "default": 1}),
        "EagleDecodingConfig": kind(
            "decoding_type", "Eagle", max_draft_len=optional({"type": "integer", "minimum": 0})
        ),
        "MTPDecodingConfig": kind("decoding_type", "MTP", sa_config=optional(ref("Suffix"))),
        "Suffix": strict(size={"type": "integer"}),
        "Dsa": kind("algorithm", "dsa", index_topk=optional({"type": "integer"})),
        "Rocket": kind("algorithm", "rocket", window_size={"type": "integer", "default": 32}),
        "Gemm": strict(
            allowed_backends={"type": "array", "items": {"enum": ["cutlass", "cublaslt"], "type": "string"}}
        ),
        "Free": {"type": "object", "properties": {"known": {"type": "integer"}}},
    },
    **strict(
        model={"anyOf": [{"type": "string"}, {"format": "path", "type": "string"}]},
        policy=ref("Policy", default="FIRST"),
        fraction=optional({"type": "number", "minimum": 0, "maximum": 1}),
        level={"enum": [1, 2, None]},
        cuda_graph_config=optional({"anyOf": [ref("Decode"), ref("Encode")]}),
        speculative_config=optional(tagged("decoding_type", Eagle="EagleDecodingConfig", MTP="MTPDecodingConfig")),
        sparse_attention_config=optional(tagged("algorithm", dsa="Dsa", rocket="Rocket")),
        nvfp4_gemm_config=ref("Gemm"),
        disagg_cluster=optional(strict(cluster_uri={"type": "string"})),
        internal_request_auth_key=optional({"type": "string", "minLength": 1}),
        checkpoint_loader={"type": "null"},
        drafter={"not": {}},
        env_overrides=optional({"type": "object", "additionalProperties": {"type": "string"}}),
        use_manager={"anyOf": [{"type": "boolean"}, {"const": "auto", "type": "string"}]},
        free=ref("Free"),
        _private={"type": "integer"},
    ),
    "title": "TensorRT-LLM 1.9.0rc2 trtllm-serve --config",
}


def schema(**changes: Any) -> str:
    return json.dumps({**copy.deepcopy(SCHEMA), **changes})


def defined(**definitions: Any) -> str:
    return schema(**{"$defs": {**SCHEMA["$defs"], **definitions}})


# -- what becomes of a schema


def test_types_values_bounds_and_null_become_keys() -> None:
    root = data_of(schema())["sections"]["TorchLlmArgs"]
    assert root["model"] == {"type": "str", "given": True}
    assert root["policy"] == {"type": "str", "values": ["FIRST", "LAST"], "default": "FIRST"}
    assert root["fraction"] == {"type": "float?", "ge": 0, "le": 1, "default": None}
    assert root["level"] == {"type": "int?", "values": ["1", "2"]}
    assert root["internal_request_auth_key"] == {"type": "str?", "default": None}
    assert root["env_overrides"] == {"type": "dict[str,str]?", "default": None}
    assert (root["checkpoint_loader"], root["drafter"]) == ({"type": "null?"}, {"type": "null"})
    assert root["use_manager"] == {"type": "any"}
    assert "_private" not in root


def test_definitions_become_sections_and_those_that_forbid_nothing_are_lenient() -> None:
    found = data_of(schema())
    assert next(iter(found["sections"])) == "TorchLlmArgs"
    assert found["sections"]["TorchLlmArgs"]["nvfp4_gemm_config"] == {"type": "Gemm"}
    assert found["sections"]["TorchLlmArgs.disagg_cluster"] == {"cluster_uri": {"type": "str"}}
    assert found["sections"]["Gemm"] == {"allowed_backends": {"type": "list[str]", "values": ["cutlass", "cublaslt"]}}
    assert found["lenient"] == ["Free"]


def test_a_discriminator_becomes_a_union_and_its_tag_no_key() -> None:
    found = data_of(schema())
    kinds = {"Eagle": "EagleDecodingConfig", "MTP": "MTPDecodingConfig"}
    assert found["unions"]["union of speculative_config"] == {"tag": "decoding_type", "kinds": kinds}
    assert found["sections"]["EagleDecodingConfig"] == {"max_draft_len": {"type": "int?", "ge": 0, "default": None}}
    assert found["sections"]["Suffix"] == {"size": {"type": "int"}}
    assert found["decoding"] == "discriminated"


def test_a_choice_without_a_discriminator_is_by_the_tag_or_by_the_keys() -> None:
    found = data_of(schema())
    union = found["unions"]["union of cuda_graph_config"]
    assert (union["tag"], union["kinds"]) == ("mode", {"decode": "Decode", "encode": "Encode"})
    assert set(found["sections"][union["untagged"]]) == {"batch_sizes", "num_tokens"}


def test_what_no_tag_tells_apart_is_not_checked() -> None:
    text = schema(**{"$defs": {"A": strict(x={"type": "integer"}), "B": strict(y={"type": "integer"})}})
    both = {"anyOf": [ref("A"), ref("B")]}
    found = data_of(
        json.dumps(
            {**json.loads(text), "properties": {"either": both, "mixed": {"anyOf": [ref("A"), {"type": "string"}]}}}
        )
    )
    assert found["sections"]["TorchLlmArgs"] == {"either": {"type": "any"}, "mixed": {"type": "any"}}


def test_a_section_that_holds_itself_ends_as_a_mapping() -> None:
    node = strict(next=optional(ref("Node")), size={"type": "integer"})
    found = data_of(defined(Node=node, Suffix=strict(node=ref("Node"))))
    assert found["sections"]["Node"] == {"next": {"type": "mapping?", "default": None}, "size": {"type": "int"}}
    data = {**found, "versions": ["1.9.0rc2"]}
    assert ("speculative_config", "sa_config", "node", "size") in line_of("tensorrt-llm", "1.9.0rc2", data).all_keys()


def test_the_version_is_that_of_its_address() -> None:
    assert version_of(schema()) == "1.9.0rc2"
    assert version_of(schema(**{"$id": "https://nvidia.github.io/TensorRT-LLM/latest/x.json"})) == ""


# -- what is not a schema


def wide(levels: int) -> dict[str, Any]:
    """Return sections of ten keys each, every one of them the next section: ten to the power of `levels` paths."""
    below = {f"S{level}": strict(**{f"k{key}": ref(f"S{level + 1}") for key in range(10)}) for level in range(levels)}
    return {**below, f"S{levels}": strict(end={"type": "integer"}), "Suffix": strict(first=ref("S0"))}


def deep(levels: int) -> dict[str, Any]:
    """Return a chain of sections, of which the later ones are read before the earlier ones."""
    below = {f"C{level}": strict(below=ref(f"C{level + 1}")) for level in range(levels)}
    roots = {f"r{level}": ref(f"C{level}") for level in reversed(range(levels))}
    return {**below, f"C{levels}": strict(end={"type": "integer"}), "Suffix": strict(**roots)}


def doubling(levels: int) -> dict[str, Any]:
    """Return references of which each leads to eight more."""
    below = {f"D{level}": {"anyOf": [ref(f"D{level + 1}")] * 8} for level in range(levels)}
    return {**below, f"D{levels}": NULL, "Policy": ref("D0")}


HOSTILE = {
    "nothing": ("", "not JSON"),
    "no JSON": ("<html>", "not JSON"),
    "cut off": (schema()[:-40], "not JSON"),
    "NaN": ('{"properties": {"a": {"minimum": NaN}}}', "not JSON"),
    "a number of 5,000 digits": ('{"properties": {"a": {"minimum": ' + "9" * 5000 + "}}}", "not JSON"),
    "nested JSON": ("[" * 100_000, "nested too deeply"),
    "a list": ("[]", "no properties"),
    "no properties": ("{}", "no properties"),
    "empty properties": ('{"properties": {}}', "no properties"),
    "properties that are a list": ('{"properties": [1]}', "no properties"),
    "$defs that is a list": (schema(**{"$defs": []}), "$defs is not a mapping"),
    "a section that is a list": (defined(Gemm={"properties": []}), "are not a mapping"),
    "a reference to nothing": (defined(Gemm=strict(x=ref("Gone"))), "which is not there"),
    "a reference elsewhere": (defined(Gemm=strict(x={"$ref": "http://example.com/x"})), "which is not there"),
    "a reference that is a list": (defined(Gemm=strict(x={"$ref": []})), "which is not there"),
    "a reference to itself": (defined(Policy=ref("Policy")), "lead too far"),
    "references in a ring": (defined(Policy=ref("Other"), Other=ref("Policy")), "lead too far"),
    "references that double": (defined(**doubling(9)), "lead too far"),
    "too many keys": (defined(**wide(8)), "more than 20000 keys"),
    "too deep": (defined(**deep(200)), "nested more than 40 deep"),
    "a name with a control character": (defined(Gemm=strict(**{"a\x1b[2J": {}})), "is not the name of a key"),
    "a value with a control character": (defined(Policy={"enum": ["\x1b[2J"]}), "cannot be printed"),
    "values that are text": (defined(Policy={"enum": "FIRST"}), "is not a list"),
    "a choice that is text": (defined(Policy={"anyOf": "x"}), "not a list"),
    "a section with a type's name": (defined(str=strict(a={}), Gemm=strict(x=ref("str"))), "which is not there"),
    "a discriminator without a name": (
        schema(properties={"a": {"discriminator": {"mapping": {}}, "oneOf": []}}),
        "discriminator without names",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "why"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_schema_is_named_and_nothing_is_kept(text: str, why: str) -> None:
    with pytest.raises(SpoiltSchemaError, match=why.replace("$", r"\$")) as raised:
        data_of(text)
    assert raised.value.code == "RW0364"
    answer = engine_data.read("r/x:1", ONE, json.dumps({"version": "1.9.0", "schema": text}))
    assert answer is not None
    assert answer.options == {}
    assert answer.why.startswith("RW0364: ")


ODD: list[Any] = [
    True,
    {"type": []},
    {"type": {}},
    {"type": "array", "items": []},
    {"anyOf": []},
    {"const": {}},
    {"allOf": [{}, {}]},
]


@pytest.mark.parametrize("part", ODD, ids=json.dumps)
def test_odd_parts_are_simply_not_checked_or_null(part: Any) -> None:
    found = data_of(json.dumps({"properties": {"a": part}}))
    assert found["sections"]["TorchLlmArgs"]["a"]["type"] in ("any", "null", "list")


# -- out of the image


@pytest.fixture
def shipped(image: Image) -> Path:
    """Make an image with a package that cannot be imported, and the schema's file in it."""
    image.made_up("raise ImportError")
    package = image.site / "tensorrt_llm"
    (package / "__init__.py").write_text("raise ImportError('no GPU')\n")
    (package / "version.py").write_text('# a comment\n__version__ = "1.9.0rc3"\n')
    (package / "schemas").mkdir()
    file = package / "schemas/trtllm-serve-config.schema.json"
    file.write_text(schema())
    return file


def schema_in(image: Image) -> engine_data.Walked | None:
    status, printed, errors = image.run("tensorrt-llm", script=schema_script)
    assert status == 0, errors
    return engine_data.read("r/x:1", ONE, printed)


def test_the_file_is_read_without_importing_the_engine(image: Image, shipped: Path) -> None:
    found = schema_in(image)
    assert found is not None
    assert (found.why, found.options["version"]) == ("", "1.9.0rc3")
    assert "nvfp4_gemm_config" in found.options["sections"]["TorchLlmArgs"]


def test_without_the_package_s_version_the_schema_s_own_counts(image: Image, shipped: Path) -> None:
    (shipped.parents[1] / "version.py").unlink()
    found = schema_in(image)
    assert found is not None
    assert found.options["version"] == "1.9.0rc2"
    shipped.write_text(schema(**{"$id": ""}))
    nameless = schema_in(image)
    assert nameless is not None
    assert "names a version" in nameless.why


def test_an_image_without_the_file_is_walked_as_before(image: Image) -> None:
    assert schema_in(image) is None
    image.made_up("")
    assert schema_in(image) is None
    assert engine_data.read("r/x:1", ONE, "") is None
    assert engine_data.read("r/x:1", ONE, "[]") is None


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_bytes(b" " * (50 << 20)), "52428800 bytes, more than 3145728"),
        (lambda file: file.write_bytes(b"\xff\xfe\x00"), "UnicodeDecodeError"),
        (lambda file: (file.unlink(), file.mkdir()), "it is not a file"),
        (lambda file: file.write_text(""), "not JSON"),
    ],
    ids=["50 MB", "no text", "a folder", "empty"],
)
def test_a_file_that_is_none_says_so(image: Image, shipped: Path, spoil: Any, why: str) -> None:
    spoil(shipped)
    found = schema_in(image)
    assert found is not None
    assert why in found.why
    assert (found.why[:6], found.options) == ("RW0364", {})


def test_the_largest_file_that_is_taken_arrives_whole(image: Image, shipped: Path) -> None:
    shipped.write_text(schema() + "\n" * ((3 << 20) - len(schema())))
    found = schema_in(image)
    assert found is not None
    assert found.why == ""


def test_the_container_has_no_gpu_no_network_and_nothing_to_write_to() -> None:
    script = schema_script(WantedOptions(WANTED, "tensorrt-llm", gpus=("GPU-1",)))
    for words in ("--network none", "NVIDIA_VISIBLE_DEVICES=void", "--read-only", "--cap-drop ALL", WANTED.spec.image):
        assert words in script
    assert "--runtime" not in script
    assert "GPU-1" not in script


# -- what is checked with it


@pytest.fixture
def site(tmp_path: Path) -> Path:
    found = engine_data.read("r/private:mine", ONE, json.dumps({"version": "1.9.0rc2", "schema": schema()}))
    assert found is not None
    write(tmp_path, found.image, ONE, found.engine, dict(found.options))
    return tmp_path


GOOD: dict[str, Any] = {
    "policy": "LAST",
    "fraction": None,
    "level": 2,
    "cuda_graph_config": {"num_tokens": 3},
    "sparse_attention_config": {"algorithm": "rocket", "window_size": 16},
    "nvfp4_gemm_config": {"allowed_backends": ["cutlass"]},
    "disagg_cluster": {"cluster_uri": "http://10.0.0.1:8000"},
    "internal_request_auth_key": None,
    "checkpoint_loader": None,
    "env_overrides": {"A": "1"},
    "use_manager": "auto",
    "free": {"known": 1},
}


def test_its_digest_is_checked_exactly_and_offline(site: Path) -> None:
    for level in (Level.REFUSE, Level.WARN):
        assert problem_texts(site, level, **MINE, image_digest=ONE, engine=GOOD) == []
    wrong = {
        "polcy": "LAST",
        "fraction": 2,
        "level": 3,
        "cuda_graph_config": {"mode": "decode", "num_tokens": 3},
        "sparse_attention_config": {"algorithm": "dsa", "window_size": 16},
        "nvfp4_gemm_config": {"allowed_backend": ["cutlass"]},
        "disagg_cluster": {"cluster": "x"},
        "checkpoint_loader": "mine",
    }
    assert [one.split(": ")[0] for one in problem_texts(site, **MINE, image_digest=ONE, engine=wrong)] == [
        "engine.polcy",
        "engine.fraction",
        "engine.level",
        "engine.cuda_graph_config.num_tokens",
        "engine.sparse_attention_config.window_size",
        "engine.nvfp4_gemm_config.allowed_backend",
        "engine.disagg_cluster.cluster",
        "engine.checkpoint_loader",
    ]


def test_what_the_engine_drops_before_it_looks_is_only_warned_of(site: Path) -> None:
    """No schema says it: `sampler_type` is a field no longer, and trtllm-serve takes it out with a warning."""
    assert problem_texts(site, **MINE, image_digest=ONE, engine={"sampler_type": "auto"}) == []
    (warned,) = problem_texts(site, Level.WARN, **MINE, image_digest=ONE, engine={"sampler_type": "auto"})
    assert "takes this key and ignores it" in warned


def test_words_of_a_list_are_checked_one_by_one(site: Path) -> None:
    (wrong,) = problem_texts(
        site, **MINE, image_digest=ONE, engine={"nvfp4_gemm_config": {"allowed_backends": ["cutlas"]}}
    )
    assert wrong.startswith("engine.nvfp4_gemm_config.allowed_backends[0]: ")


def test_a_key_that_a_section_must_have_is_missed(tmp_path: Path) -> None:
    cluster = {**strict(uri={"type": "string"}, name={"type": "string"}), "required": ["uri"]}
    text = json.dumps(strict(disagg_cluster=cluster))
    write(tmp_path, "r/private:mine", ONE, TRT, {"version": "1.4.0rc1", **data_of(text)})
    (found,) = problem_texts(tmp_path, **MINE, image_digest=ONE, engine={"disagg_cluster": {"name": "a"}})
    assert found.startswith("engine.disagg_cluster.uri: ")
    assert problem_texts(tmp_path, **MINE, image_digest=ONE, engine={"disagg_cluster": {"uri": "http://a"}}) == []
    assert problem_texts(tmp_path, **MINE, image_digest=ONE, engine={}) == []


def test_a_plain_text_of_the_schema_has_the_usual_values_of_its_version(tmp_path: Path) -> None:
    properties = {name: {"type": "string"} for name in ("attn_backend", "reasoning_parser", "post_processor_hook")}
    text = json.dumps({"properties": properties, "additionalProperties": False})
    for version, wrong in (("1.4.0rc1", 1), ("1.5.0rc0", 0)):
        write(tmp_path, "r/private:mine", ONE, TRT, {"version": version, **data_of(text)})
        assert len(problem_texts(tmp_path, **MINE, image_digest=ONE, engine={"attn_backend": "FLASHINFR"})) == wrong
        right = {"reasoning_parser": "kimi_k3", "attn_backend": "flashinfer", "post_processor_hook": "ours"}
        assert problem_texts(tmp_path, **MINE, image_digest=ONE, engine=right) == []


def test_an_option_that_only_this_image_lacks_is_not_called_gone(tmp_path: Path) -> None:
    text = json.dumps({"properties": {"attn_backend": {"type": "string"}}, "additionalProperties": False})
    write(tmp_path, "r/private:mine", ONE, TRT, {"version": "1.4.0rc1", **data_of(text)})
    (found,) = problem_texts(tmp_path, **MINE, image_digest=ONE, engine={"stream_interval": 2})
    assert "other images of 1.4.0rc1" in found


def test_it_is_kept_with_its_source(site: Path) -> None:
    document = load_yaml(file_of(site, ONE).read_text())
    assert (document["source"], document["version"]) == ("its own schema", "1.9.0rc2")


# -- what trtllm-serve takes out of the file itself, in the shipped data


@pytest.mark.parametrize(
    ("version", "taken"),
    [
        ("1.2.0rc6", {"disagg_cluster"}),
        ("1.2.1", {"disagg_cluster"}),
        ("1.3.0rc22.post1", set(TAKEN)),
        ("1.3.0rc28", set(TAKEN)),
        ("1.4.0rc1", set(TAKEN)),
        ("1.1.0", set()),
    ],
)
def test_keys_that_are_the_server_s_and_not_the_engine_s_are_not_refused(version: str, taken: set[str]) -> None:
    """Source: serve.py takes them out; --disagg_cluster_uri is in the documentation of 1.2.0, not of 1.2.0rc0."""
    stopped = [name for name, value in TAKEN.items() if refused(check_options(TRT, version, {name: value}))]
    assert set(TAKEN) - set(stopped) == taken
