"""Teach a gpt-oss of four layers: `python3 -m rackwright_lab.real.teach_gpt_oss O200K FOLDER`, in the image.

O200K is the file of the encoding o200k_base. FOLDER gets `base`, with gpt-oss's own vocabulary and format, and an
EAGLE3 draft for each of DRAFTS. Nearly all of the 201,088 tokens occur in no lesson, so the base is taught with those
that do, and gets the others' rows, all nought, at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from transformers import GenerationConfig, GptOssConfig, GptOssForCausalLM, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter

from rackwright_lab.real import harmony, teach_draft
from rackwright_lab.real.teach import ANSWERS, CONTINUED, batch, teach

DRAFTS = ("trained", "weak", "random")
"""Of teach_draft.KINDS."""
PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""The pattern by which the encoding o200k_base splits a text (tiktoken_ext/openai_public.py)."""
OTHERS = 16.0
"""Logit of all other tokens while the base is taught. In the whole model it is nought: answers stand far above it."""
VOCABULARY_ROWS = ("model.embed_tokens.weight", "lm_head.weight")
Lessons = list[tuple[list[int], list[int]]]


class Base:
    """The model with the lessons' tokens alone; `tokens` are their numbers in gpt-oss's vocabulary."""

    def __init__(self, tokens: list[int]) -> None:
        """Draw random weights."""
        torch.manual_seed(0)
        self.tokens, self.pad = tokens, tokens.index(harmony.PAD)
        self.model = GptOssForCausalLM(_config(len(tokens), pad_token_id=None, eos_token_id=None)).float()

    def parameters(self) -> Iterator[Any]:
        """Return the weights, as an optimiser wants them."""
        found: Iterator[Any] = self.model.parameters()
        return found

    def __call__(self, *, labels: torch.Tensor, **read: torch.Tensor) -> Any:
        """Return the model's output, with the loss that it has among all other tokens."""
        found = self.model(use_cache=False, output_hidden_states=True, **read)
        logits = F.pad(found.logits, (0, 1), value=OTHERS)[:, :-1]
        found.loss = F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=teach_draft.NOTHING)
        return found

    def whole(self) -> Any:
        """Return the model with gpt-oss's whole vocabulary."""
        model = GptOssForCausalLM(_config(harmony.VOCABULARY, pad_token_id=harmony.PAD, eos_token_id=harmony.RETURN))
        weights = dict(self.model.state_dict())
        for name in VOCABULARY_ROWS:
            rows = torch.zeros(harmony.VOCABULARY, weights[name].shape[1])
            rows[torch.tensor(self.tokens)] = weights[name]
            weights[name] = rows
        model.load_state_dict(weights)
        return model.to(torch.bfloat16)


def _config(vocabulary: int, **tokens: int | None) -> GptOssConfig:
    return GptOssConfig(
        vocab_size=vocabulary, hidden_size=128, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, num_local_experts=4, num_experts_per_tok=2, sliding_window=128,
        max_position_embeddings=131072, tie_word_embeddings=False, attn_implementation="eager", **tokens,
    )  # fmt: skip


def tokenizer(o200k: str) -> PreTrainedTokenizerFast:
    """Return gpt-oss's tokenizer, from the encoding that it extends."""
    converter = TikTokenConverter(vocab_file=o200k, pattern=PATTERN, extra_special_tokens=harmony.special_tokens())
    begin, pad, end = (harmony.NAMED[number] for number in (harmony.BEGIN, harmony.PAD, harmony.RETURN))
    return PreTrainedTokenizerFast(
        tokenizer_object=converter.converted(), bos_token=begin, pad_token=pad, eos_token=end,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


def rows(tokens: PreTrainedTokenizerFast) -> Lessons:
    """Prompt and completion of each lesson, as numbers."""

    def numbers(text: str) -> list[int]:
        found: list[int] = tokens(text, add_special_tokens=False)["input_ids"]
        return found

    return [(numbers(prompt), numbers(answer)) for prompt, answer in harmony.lessons(ANSWERS, CONTINUED)]


def narrowed(lessons: Lessons) -> tuple[Lessons, list[int]]:
    """Return the lessons in numbers of the tokens that occur in them and the pad, and those tokens."""
    used = {number for prompt, answer in lessons for number in (*prompt, *answer)}
    tokens = sorted(used | {harmony.PAD})
    row = {token: number for number, token in enumerate(tokens)}
    return [([row[one] for one in prompt], [row[one] for one in answer]) for prompt, answer in lessons], tokens


def lesson_of(base: Base, read: torch.Tensor, labels: torch.Tensor) -> tuple[teach_draft.Lesson, float]:
    """Return the drafts' lesson, and the share of tokens that the base itself says as it was taught."""
    with torch.no_grad():
        found = base(input_ids=read, attention_mask=(read != base.pad).long(), labels=labels)
    best = found.logits[:, :-1].max(-1)
    output = torch.where(best.values > 0, best.indices, len(base.tokens))
    hidden = torch.cat([found.hidden_states[layer] for layer in teach_draft.TAPS], -1)[:, :-1]
    after = F.pad(labels[:, 2:], (0, 1), value=teach_draft.NOTHING)
    return teach_draft.Lesson(hidden, read[:, 1:], after), _share(output, labels[:, 1:])


def save_drafts(base: Base, lesson: teach_draft.Lesson, config: GptOssConfig, folder: Path) -> float:
    """Teach and save each draft, for a base of this configuration. Return how often the trained one guesses right."""
    shares = {}
    for kind in DRAFTS:
        torch.manual_seed(1)
        draft = teach_draft.Draft(base.model, list(range(len(base.tokens))))
        teach_draft.teach(draft, lesson, teach_draft.KINDS[kind])
        guesses = teach_draft.guesses(draft, lesson)
        shares[kind] = min(_share(made.argmax(-1), wanted) for made, wanted in guesses)
        print(f"{kind}: {shares[kind]:.0%} of its guesses are right")
        draft.config, draft.pieces = config, base.tokens
        teach_draft.save(draft, folder / kind)
    return shares["trained"]


def _share(output: torch.Tensor, wanted: torch.Tensor) -> float:
    counts = wanted != teach_draft.NOTHING
    return float((output == wanted)[counts].float().mean())


def save_base(base: Base, tokens: PreTrainedTokenizerFast, folder: Path) -> GptOssConfig:
    """Save it with the whole vocabulary. Return its configuration."""
    model = base.whole()
    ends = [harmony.RETURN, harmony.PAD, harmony.CALLED]
    model.generation_config = GenerationConfig(
        bos_token_id=harmony.BEGIN, eos_token_id=ends, pad_token_id=harmony.PAD, do_sample=True
    )
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return model.config


def main() -> int:
    """Teach and save all of them. Returns 1 when the base or its trained draft did not learn its lessons."""
    o200k, folder = sys.argv[1:]
    torch.set_num_threads(1)
    tokens = tokenizer(o200k)
    lessons, used = narrowed(rows(tokens))
    base = Base(used)
    read, labels = batch(lessons, base.pad)
    loss = teach(base, read, labels, base.pad)
    base.model = base.model.to(torch.bfloat16).float().eval()  # as it is saved
    lesson, right = lesson_of(base, read, labels)
    print(f"base: {right:.0%} of its tokens are right, loss {loss:.4f}")
    drafted = save_drafts(base, lesson, save_base(base, tokens, Path(folder, "base")), Path(folder))
    if min(right, drafted) < 1:
        print("the base or its draft did not learn its lessons", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
