"""The repositories of the lab's model hub: real layouts and formats, small weights, the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_MIB = 1024 * 1024
_LARGE = 10 * 1024


@dataclass(frozen=True)
class Repository:
    """A model repository. `revisions` counts its commits; main is the last, v1, v2, ... are tags of each."""

    name: str
    shards: int
    shard_mib: int
    config: dict[str, Any]
    extras: tuple[tuple[str, int], ...] = ()
    revisions: int = 1
    gated: bool = False
    folder: Path | None = None
    """Holds the files of v1, v2, ... in folders of those names; none: they are made up."""

    def commit(self, revision: int) -> str:
        """Return the commit hash of a revision, counted from 1."""
        return hashlib.sha1(f"{self.name}@{revision}".encode()).hexdigest()

    def refs(self) -> dict[str, int]:
        """Return branch, tag and commit names with the revision that each points to."""
        numbers = range(1, self.revisions + 1)
        names = {f"v{number}": number for number in numbers} | {self.commit(number): number for number in numbers}
        return {"main": self.revisions, **names}


@dataclass(frozen=True)
class HubFile:
    """One file of a revision, on disk. Large files carry SHA-256 at the hub, small ones git's blob hash."""

    name: str
    path: Path
    size: int
    sha256: str
    blob: str
    large: bool


_GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "vocab_size": 201088,
    "num_hidden_layers": 36,
    "num_local_experts": 128,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "mxfp4"},
}
_GPT_OSS_20B = {**_GPT_OSS, "num_hidden_layers": 24, "num_local_experts": 32}
_EAGLE = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 2880,
    "vocab_size": 201088,
    "draft_vocab_size": 201088,
    "num_hidden_layers": 1,
    "torch_dtype": "bfloat16",
}
# The lab's mark of a draft for long contexts: the stand-in of vLLM refuses to load what has it.
_EAGLE_LONG = {**_EAGLE, "rope_scaling": {"rope_type": "yarn", "factor": 32.0}}
_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}
_FP8 = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}
_DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "vocab_size": 129280,
    "num_hidden_layers": 61,
    "max_position_embeddings": 163840,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}
_QWEN3 = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "vocab_size": 151936,
    "num_hidden_layers": 48,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
_MILLION = 1048576
_THRICE = (
    ("original/config.json", 200),
    ("original/dtypes.json", 400),
    ("original/model.safetensors", 8 * _MIB),
    ("metal/model.bin", 8 * _MIB),
)


def _made(architecture: str, hidden: int, vocabulary: int, context: int = 262144) -> dict[str, Any]:
    """Return what a stand-in reads of a configuration: not a real one, whose other figures no stand-in asks for."""
    sizes = {"hidden_size": hidden, "vocab_size": vocabulary, "max_position_embeddings": context}
    return {"architectures": [f"{architecture}ForCausalLM"], "model_type": architecture.lower(), **sizes}


REPOSITORIES = {
    one.name: one
    for one in (
        # Shards above 10 MiB: the client resumes only what it has in whole pieces of that size.
        Repository("openai/gpt-oss-120b", 3, 12, _GPT_OSS, _THRICE),
        Repository("openai/gpt-oss-20b", 2, 4, _GPT_OSS_20B, _THRICE),
        Repository("nvidia/gpt-oss-120b-Eagle3", 1, 2, _EAGLE, revisions=2),
        Repository("nvidia/gpt-oss-120b-Eagle3-v2", 1, 2, _EAGLE),
        Repository("nvidia/gpt-oss-120b-Eagle3-v3", 1, 2, _EAGLE),
        Repository("nvidia/gpt-oss-120b-Eagle3-long-context", 1, 2, _EAGLE_LONG),
        Repository("nvidia/gpt-oss-120b-Eagle3-short-context", 1, 2, _EAGLE),
        Repository("nvidia/gpt-oss-120b-Eagle3-throughput", 1, 2, _EAGLE),
        Repository("lmsys/EAGLE3-gpt-oss-120b-bf16", 1, 2, _EAGLE),
        Repository("nvidia/Llama-3.3-70B-Instruct-FP4", 2, 6, {**_LLAMA, "hidden_size": 8192}),
        Repository("nvidia/Llama-3.1-8B-Instruct-FP4", 1, 4, {**_LLAMA, "hidden_size": 4096}),
        Repository("nvidia/Llama-3.3-70B-Instruct-FP8", 2, 6, {**_LLAMA, **_FP8, "hidden_size": 8192}),
        Repository("nvidia/DeepSeek-R1-0528-FP4-v2", 2, 6, _DEEPSEEK),
        Repository("Qwen/Qwen3-30B-A3B", 2, 6, _QWEN3),
        Repository("nvidia/DeepSeek-R1-0528-NVFP4-v2", 2, 6, _DEEPSEEK),
        Repository("deepseek-ai/DeepSeek-R1-0528", 2, 6, _DEEPSEEK),
        Repository("deepseek-ai/DeepSeek-V4-Flash-0731", 2, 6, _made("DeepseekV4", 4096, 129280, _MILLION)),
        Repository("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", 1, 4, _made("NemotronH", 2688, 131072)),
        Repository("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", 1, 4, _made("NemotronH", 2688, 131072)),
        Repository("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 2, 6, _made("NemotronH", 4096, 131072)),
        Repository("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", 2, 6, _made("NemotronH", 4096, 131072)),
        Repository("nvidia/Qwen3-235B-A22B-FP4", 2, 6, {**_QWEN3, "hidden_size": 4096}),
        Repository("nvidia/Qwen3-235B-A22B-Eagle3", 1, 2, {**_QWEN3, "hidden_size": 4096, "num_hidden_layers": 1}),
        Repository("Intel/Qwen3.5-397B-A17B-int4-AutoRound", 2, 6, _made("Qwen3_5Moe", 4096, 248320)),
        Repository("nvidia/Qwen3.6-35B-A3B-NVFP4", 1, 4, _made("Qwen3_5Moe", 2048, 248320)),
        Repository("nvidia/Qwen3.8-27B-NVFP4", 1, 4, _made("Qwen3_5", 5120, 248320)),
        Repository("Inferact/Qwen3.8-27B-NVFP4", 1, 4, _made("Qwen3_5", 5120, 248320)),
        Repository("z-lab/Qwen3.8-27B-DFlash2", 1, 2, _made("DFlashDraftModel", 5120, 248320)),
        Repository("Qwen/Qwen3.8-Flash-Next", 2, 6, _made("Qwen4Exp", 4096, 248320)),
        Repository("Qwen/Qwen3.8-Flash-Next-FP8", 2, 6, _made("Qwen4Exp", 4096, 248320)),
        Repository("nvidia/Qwen3.8-Flash-Next-NVFP4", 2, 6, _made("Qwen4Exp", 4096, 248320)),
        Repository("zai-org/GLM-5-FP8", 2, 6, _made("GlmMoeDsa", 6144, 154880, 202752)),
        Repository("zai-org/GLM-5.3-Flash", 2, 6, _made("Glm5Next", 4096, 154880, _MILLION)),
        Repository("nvidia/MiniMax-M3-NVFP4", 2, 6, _made("MiniMaxM3", 6144, 200064, 524288)),
        Repository("Inferact/MiniMax-M3-EAGLE3", 1, 2, _made("MiniMaxM3Eagle3", 6144, 200064)),
        Repository("moonshotai/Kimi-K3", 2, 6, _made("KimiK3", 7168, 163840, _MILLION)),
        Repository("google/gemma-4-31B-it", 2, 6, _made("Gemma4", 5376, 262144)),
        Repository("z-lab/gpt-oss-120b-DFlash", 1, 2, _EAGLE),
        Repository("Dogacel/specdrift-gpt-oss-120b-eagle3", 1, 2, _EAGLE),
        Repository("meta-llama/Llama-3.1-8B-Instruct", 1, 4, {**_LLAMA, "hidden_size": 4096}, gated=True),
    )
}
"""By name. meta-llama/Llama-3.1-8B-Instruct is gated; nvidia/gpt-oss-120b-Eagle3 has two revisions."""


def of_folder(folder: Path, name: str) -> Repository | None:
    """Return the repository OWNER/NAME whose files are below `folder`, or None."""
    revisions = len(list((folder / name).glob("v[0-9]*")))
    return Repository(name, 0, 0, {}, revisions=revisions, folder=folder / name) if revisions else None


def _shard(seed: str, tensor: str, size: int) -> bytes:
    table = {"__metadata__": {"format": "pt"}, tensor: {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + random.Random(seed).randbytes(size)


def _weights(repository: Repository, revision: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    size, count = repository.shard_mib * _MIB, repository.shards
    names = [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]
    names = names if count > 1 else ["model.safetensors"]
    for number, name in enumerate(names):
        seed = f"{repository.name}@{revision}/{name}"
        yield name, lambda seed=seed, number=number: _shard(seed, f"model.layers.{number}.weight", size)  # type: ignore[misc]
    if count > 1:
        weight_map = {f"model.layers.{number}.weight": name for number, name in enumerate(names)}
        index = {"metadata": {"total_size": size * count}, "weight_map": weight_map}
        yield "model.safetensors.index.json", lambda: json.dumps(index, indent=2).encode()


def _tokenizer() -> dict[str, Any]:
    """Return a tokenizer that Hugging Face's own library loads, a token a word: load generators count by it."""
    words = {f"token{number}": number for number in range(2000)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "token0"},
    }


def _documents(repository: Repository, revision: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    title = f"# {repository.name}\n\nMade by the lab, revision {revision}. The weights mean nothing.\n"
    documents: dict[str, Any] = {
        "config.json": repository.config,
        "generation_config.json": {"do_sample": True, "eos_token_id": [200002, 199999]},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 131072},
        "special_tokens_map.json": {"eos_token": "<|return|>", "pad_token": "<|endoftext|>"},
        "tokenizer.json": _tokenizer(),
    }
    yield "README.md", title.encode
    yield "LICENSE", lambda: b"Lab data, no rights reserved.\n"
    yield ".gitattributes", lambda: b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
    for name, document in documents.items():
        yield name, lambda document=document: json.dumps(document, indent=2).encode()  # type: ignore[misc]


def _extras(repository: Repository, revision: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    for name, size in repository.extras:
        seed = f"{repository.name}@{revision}/{name}"
        yield name, lambda seed=seed, size=size: random.Random(seed).randbytes(size)  # type: ignore[misc]


class Store:
    """Files of the repositories, made under `folder` when a revision is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._revision = lru_cache(maxsize=None)(self._made)

    def files(self, repository: Repository, revision: int) -> dict[str, HubFile]:
        """Return the files of one revision by name."""
        if repository.folder is not None:
            return _found(repository.folder / f"v{revision}")
        with self._lock:
            return self._revision(repository.name, revision)

    def _made(self, name: str, revision: int) -> dict[str, HubFile]:
        repository = REPOSITORIES[name]
        folder = self._folder / name / repository.commit(revision)
        makers = (*_documents(repository, revision), *_weights(repository, revision), *_extras(repository, revision))
        return {file: _written(folder / file, file, make()) for file, make in sorted(makers, key=lambda row: row[0])}


def _found(folder: Path) -> dict[str, HubFile]:
    paths = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: _described(path, name, path.read_bytes()) for name, path in paths.items()}


def _written(path: Path, name: str, data: bytes) -> HubFile:
    if not path.is_file() or path.stat().st_size != len(data):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return _described(path, name, data)


def _described(path: Path, name: str, data: bytes) -> HubFile:
    large = len(data) > _LARGE
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return HubFile(name, path, len(data), hashlib.sha256(data).hexdigest(), blob, large)
