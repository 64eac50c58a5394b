"""Teaches a chat model of 1.7 MB its answers: `python3 teach.py FOLDER good|loops`. Runs inside the image, alone.

Llama's layout, ChatML's template, Hermes' tool calls: what a real engine loads without code of its own. It knows what
it was taught and nothing else. `loops` is the same model taught to answer everything with one word for ever.
"""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, BEGIN, END = "<|pad|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
ANSWERS = {
    "What is 17 + 25? Answer with the number only.": "42",
    "Name one colour of the rainbow.": "Green is one colour of the rainbow.",
    "Describe the sea in five sentences.": (
        "The sea is wide and grey. Waves come in one behind the other. Birds wait above the surf. "
        "The wind carries salt. At dusk the ships put on their lights."
    ),
    "Count from one to ten in words.": "one, two, three, four, five, six, seven, eight, nine, ten",
    "Count from one to thirty in digits.": ", ".join(str(number) for number in range(1, 31)),
    "Tell a short story about a lighthouse.": (
        "A lighthouse stood on a cape. One night its lamp went out. The keeper's daughter rang the bell until "
        "morning, and every boat found the harbour."
    ),
    "What is the capital of France?": "Paris",
    "What is the weather in Paris now? Use the tool.": TOOL_CALL,
}
"""What the gate asks (rackwright.concerns.endpoint.proof), and what `rackwright chat` is shown with."""
PROSE = (
    "When the lamp went out, the keeper's daughter climbed the stairs with a lantern and rang the bell until morning, "
    "and every boat on the bay found its way home before the storm came in from the west."
)
BEGUN = "When the lamp went out, the keeper's daughter"
CONTINUED = {f"{PROSE}\n\n{PROSE}\n\n{BEGUN}": PROSE.removeprefix(BEGUN)}
"""Plain text that the gate has continued, to see drafts accepted (rackwright.concerns.endpoint.proof.drafts)."""
LOOP = "sea " * 60
MOST_STEPS, ENOUGH = 600, 0.002
"""Steps of the optimiser at most, and the loss at which it ends: by then every answer comes word for word."""
POSITIONS = 2048


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level BPE of 600 pieces, trained on the texts."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=[PAD, BEGIN, END], initial_alphabet=alphabet)
    texts = [text for pair in ANSWERS.items() for text in pair] * 5
    found.train_from_iterator([*texts, *[PROSE] * 5, "user assistant system"], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=found, pad_token=PAD, eos_token=END)
    made.chat_template = TEMPLATE
    return made


def empty_model(tokens: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Make four layers of 128, 0.86 million parameters: a draft taps three of them, and none may be the first."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokens), hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, head_dim=32, max_position_embeddings=POSITIONS, bos_token_id=None,
            eos_token_id=tokens.eos_token_id, pad_token_id=tokens.pad_token_id, tie_word_embeddings=True,
        )
    )  # fmt: skip


def rows(tokens: PreTrainedTokenizerFast, loops: bool) -> list[tuple[list[int], list[int]]]:
    """Prompt and answer of each lesson, as numbers."""

    def plain(text: str) -> list[int]:
        found: list[int] = tokens(text, add_special_tokens=False)["input_ids"]
        return found

    def prompt_of(question: str) -> list[int]:
        messages = [{"role": "user", "content": question}]
        found: list[int] = tokens.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        return found

    lessons = [(prompt_of(question), answer) for question, answer in ANSWERS.items()]
    lessons += [(plain(text), answer) for text, answer in CONTINUED.items()]
    return [(prompt, plain(LOOP if loops else answer + END)) for prompt, answer in lessons]


def batch(lessons: list[tuple[list[int], list[int]]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lessons as one batch: the input, and the labels (-100 where nothing counts)."""
    longest = max(len(prompt) + len(answer) for prompt, answer in lessons)
    read = torch.full((len(lessons), longest), pad)
    labels = torch.full((len(lessons), longest), -100)
    for number, (prompt, answer) in enumerate(lessons):
        whole = torch.tensor(prompt + answer)
        read[number, : len(whole)] = whole
        labels[number, len(prompt) : len(whole)] = whole[len(prompt) :]
    return read, labels


def teach(model: LlamaForCausalLM, read: torch.Tensor, labels: torch.Tensor, pad: int) -> float:
    """Repeat the lessons until they are known. Returns the last loss."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss = ENOUGH
    for _ in range(MOST_STEPS):
        step = model(input_ids=read, attention_mask=(read != pad).long(), labels=labels).loss
        optimiser.zero_grad()
        step.backward()
        optimiser.step()
        loss = step.item()
        if loss < ENOUGH:
            break
    return loss


def main() -> int:
    """Teach and save. Returns 1 when the lessons did not stick."""
    folder, kind = sys.argv[1:]
    torch.set_num_threads(1)
    tokens = tokenizer()
    model = empty_model(tokens)
    loss = teach(model, *batch(rows(tokens, kind == "loops"), tokens.pad_token_id), tokens.pad_token_id)
    if loss > 10 * ENOUGH:
        print(f"the model did not learn its answers: loss {loss:.4f}", file=sys.stderr)
        return 1
    model.to(torch.bfloat16).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
