"""Teach EAGLE3 drafts for the small chat model: `python3 -m rackwright_lab.real.teach_draft BASE FOLDER`, in the image.

BASE is what teach.py saved, FOLDER gets a draft for each of KINDS, in the form that vLLM and SGLang load. A draft reads
hidden states of its base and guesses the next tokens, each guess from its own hidden state of the one before. So it is
taught as it is used: `DEPTH` times over its own output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from rackwright_lab.real.teach import batch, rows

DEPTH = 3
"""Tokens that it is taught to guess at once."""
TAPS = (1, 2, 3)
"""Layers of the base before which its hidden states are read.

Never 0: vLLM would hand out the embedding's own tensor, to which the layers after it add in place.
"""
MOST_STEPS, ENOUGH = 1500, 0.01
"""Steps of the optimiser at most, and the loss of all guesses at which it ends."""
KINDS = {"trained": MOST_STEPS, "weak": 2, "random": 0, "narrow": 0, "torn": 0}
"""Steps of the optimiser that each had. The first is right each time, the second seldom, the third never."""
OTHER_SIZES = {"narrow": {"hidden_size": 96, "target_hidden_size": 96}, "torn": {"hidden_size": 96}}
"""Sizes in config.json that the weights do not have: of another model's draft, and of one that only loading shows."""
NOTHING = -100
"""A label that does not count."""
Weights = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Lesson:
    """The base's lessons as a draft reads them: slot i has the hidden states of token i, and token i + 1."""

    hidden: torch.Tensor
    tokens: torch.Tensor
    labels: torch.Tensor
    """Token i + 2, as its row in the draft's own vocabulary."""


@dataclass
class Cache:
    """Keys and values of each pass, in their order."""

    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)


class Draft:
    """One layer over the base's embedding and hidden states; its weights by the names that engines look for."""

    def __init__(self, base: Any, pieces: list[int]) -> None:
        """Draw random weights. pieces: the tokens of its vocabulary."""
        self.config, self.pieces = base.config, pieces
        self.embedding = base.model.embed_tokens.weight.detach().float()
        self.weights: Weights = {f"{name}.weight": _random(*size) for name, size in self._sizes().items()}
        norms = ("midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm")
        self.weights |= {f"{name}.weight": torch.ones(self.config.hidden_size) for name in norms}

    def _sizes(self) -> dict[str, tuple[int, int]]:
        config, attention, mlp = self.config, "midlayer.self_attn", "midlayer.mlp"
        width, inner, dim = config.hidden_size, config.intermediate_size, config.head_dim
        queries, keys = config.num_attention_heads * dim, config.num_key_value_heads * dim
        return {
            "fc": (width, len(TAPS) * width),
            f"{attention}.q_proj": (queries, 2 * width),
            f"{attention}.k_proj": (keys, 2 * width),
            f"{attention}.v_proj": (keys, 2 * width),
            f"{attention}.o_proj": (width, queries),
            f"{mlp}.gate_proj": (inner, width),
            f"{mlp}.up_proj": (inner, width),
            f"{mlp}.down_proj": (width, inner),
            "lm_head": (len(self.pieces), width),
        }

    def linear(self, name: str, read: torch.Tensor) -> torch.Tensor:
        """Multiply by one of its matrices."""
        return F.linear(read, self.weights[f"{name}.weight"])

    def norm(self, name: str, read: torch.Tensor) -> torch.Tensor:
        """Return the root mean square norm, as Llama has it."""
        scale = torch.rsqrt(read.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return read * scale * self.weights[f"{name}.weight"]

    def guess(self, tokens: torch.Tensor, hidden: torch.Tensor, cache: Cache) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the hidden states and the guesses of one more pass."""
        embedded = self.norm("midlayer.input_layernorm", self.embedding[tokens])
        read = torch.cat([embedded, self.norm("midlayer.hidden_norm", hidden)], -1)
        hidden = hidden + self._attend(read, cache)
        inner = self.norm("midlayer.post_attention_layernorm", hidden)
        gate = F.silu(self.linear("midlayer.mlp.gate_proj", inner))
        hidden = hidden + self.linear("midlayer.mlp.down_proj", gate * self.linear("midlayer.mlp.up_proj", inner))
        return hidden, self.linear("lm_head", self.norm("norm", hidden))

    def _attend(self, read: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Attend to the first pass as far as it was read when this one guesses, and to one slot of each later pass."""
        repeated = self.config.num_attention_heads // self.config.num_key_value_heads
        query = _turned(self._heads("q_proj", read))
        cache.keys.append(_turned(self._heads("k_proj", read)).repeat_interleave(repeated, 1))
        cache.values.append(self._heads("v_proj", read).repeat_interleave(repeated, 1))
        done, slots = len(cache.keys) - 1, torch.arange(read.shape[1])
        ahead = slots[None, :] > slots[:, None] - done
        # A later pass has its newest key in this slot, and older ones in the slots before.
        later = [(cache.keys[n].roll(done - n, 2), cache.values[n].roll(done - n, 2)) for n in range(1, done + 1)]
        scores = [(query @ cache.keys[0].transpose(-1, -2)).masked_fill(ahead, -1e9)]
        scores += [(query * key).sum(-1, keepdim=True) for key, _ in later]
        parts = (torch.cat(scores, -1) / self.config.head_dim**0.5).softmax(-1).split([len(slots), *[1] * done], -1)
        found = parts[0] @ cache.values[0]
        for part, (_, value) in zip(parts[1:], later, strict=True):
            found = found + part * value
        return self.linear("midlayer.self_attn.o_proj", found.transpose(1, 2).flatten(2))

    def _heads(self, name: str, read: torch.Tensor) -> torch.Tensor:
        return self.linear(f"midlayer.self_attn.{name}", read).unflatten(-1, (-1, self.config.head_dim)).transpose(1, 2)


def _random(outputs: int, inputs: int) -> torch.Tensor:
    return (torch.rand(outputs, inputs) * 2 - 1) / inputs**0.5


def _turned(heads: torch.Tensor) -> torch.Tensor:
    """Return rotary positions added to the heads of each slot."""
    slots, half = torch.arange(heads.shape[2]).float(), heads.shape[3] // 2
    angles = slots[:, None] / 10000 ** (torch.arange(half).float() / half)
    first, second = heads.split(half, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


def teach(draft: Draft, lesson: Lesson, most: int) -> float:
    """Repeat the lesson for so many steps at most. Return the share of right guesses at the last one."""
    for weight in draft.weights.values():
        weight.requires_grad_()
    optimiser = torch.optim.AdamW(draft.weights.values(), lr=2e-3, weight_decay=0.0)
    right = 0.0
    for _ in range(most):
        passes = list(guesses(draft, lesson))
        loss = torch.stack([_loss(made, wanted) for made, wanted in passes]).sum()
        right = min(_right(made, wanted) for made, wanted in passes)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss.item() < ENOUGH:
            break
    return right


def guesses(draft: Draft, lesson: Lesson) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield what each pass guesses, and the labels of the slots that an engine would ask it for."""
    hidden, cache = draft.linear("fc", lesson.hidden), Cache()
    for number in range(DEPTH):
        if number:
            hidden = F.pad(hidden[:, :-1], (0, 0, 1, 0))
        hidden, made = draft.guess(lesson.tokens, hidden, cache)
        wanted = lesson.labels.clone()
        wanted[:, :number] = NOTHING
        yield made, wanted


def _loss(made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(made.flatten(0, 1), wanted.flatten(), ignore_index=NOTHING)


def _right(made: torch.Tensor, wanted: torch.Tensor) -> float:
    counts = wanted != NOTHING
    return float((made.argmax(-1)[counts] == wanted[counts]).float().mean())


def lesson_of(base: Any, tokens: Any) -> tuple[Lesson, list[int]]:
    """Return the lessons that the base was taught, with its hidden states, and the tokens that occur in them."""
    read, wanted = batch(rows(tokens, loops=False), tokens.pad_token_id)
    pieces = sorted(set(read.flatten().tolist()))
    row = torch.full((len(tokens),), NOTHING)
    row[torch.tensor(pieces)] = torch.arange(len(pieces))
    mask = (read != tokens.pad_token_id).long()
    with torch.no_grad():
        states = base(read, attention_mask=mask, output_hidden_states=True).hidden_states
    hidden = torch.cat([states[layer] for layer in TAPS], -1)[:, :-1]
    labels = F.pad(wanted[:, 2:], (0, 1), value=NOTHING)
    return Lesson(hidden, read[:, 1:], torch.where(labels >= 0, row[labels.clamp(min=0)], NOTHING)), pieces


def save(draft: Draft, folder: Path, **other_sizes: int) -> None:
    """Write the weights and config.json, with other sizes than they have where some are given."""
    tensors = {name: weight.detach().to(torch.bfloat16).contiguous() for name, weight in draft.weights.items()}
    pieces, size = torch.tensor(draft.pieces), draft.config.vocab_size
    # By how much a row of its own vocabulary is moved to be a token of the base, and which tokens it has.
    tensors["d2t"] = pieces - torch.arange(len(pieces))
    tensors["t2d"] = torch.isin(torch.arange(size), pieces)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps({**config(draft), **other_sizes}, indent=2) + "\n")


def config(draft: Draft) -> dict[str, Any]:
    """Return the base's configuration as the draft has it."""
    base = draft.config
    same = (
        "vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
        "hidden_act", "max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id", "pad_token_id",
    )  # fmt: skip
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        **{key: getattr(base, key) for key in same},
        "draft_vocab_size": len(draft.pieces),
        "target_hidden_size": base.hidden_size,
        "num_hidden_layers": 1,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        # vLLM reads the first, layers before which it taps; SGLang the second, layers after which it does.
        "eagle_aux_hidden_state_layer_ids": list(TAPS),
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": [layer - 1 for layer in TAPS],
            "use_aux_hidden_state": True,
        },
    }


def main() -> int:
    """Teach and save each kind. Returns 1 when the trained one guesses wrong."""
    base_folder, folder = sys.argv[1:]
    torch.set_num_threads(1)
    base = AutoModelForCausalLM.from_pretrained(base_folder, dtype=torch.float32).eval()
    lesson, pieces = lesson_of(base, AutoTokenizer.from_pretrained(base_folder))
    for kind, steps in KINDS.items():
        torch.manual_seed(1)
        draft = Draft(base, pieces)
        right = teach(draft, lesson, steps)
        print(f"{kind}: {right:.0%} of its guesses are right")
        if kind == "trained" and right < 1:
            print("the draft did not learn its guesses", file=sys.stderr)
            return 1
        save(draft, Path(folder, kind), **OTHER_SIZES.get(kind, {}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
