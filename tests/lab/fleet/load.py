"""Constant load on every endpoint of a fleet, from the real OpenAI client, one JSON line a request.

    python -m tests.lab.fleet.load RATE OUT NAME=URL [NAME=URL ...]

RATE is requests a second and endpoint. Every second request streams. Nothing is tried twice. Each request has a
connection of its own: an idle one is closed by the server after 5 s, which on a crowded machine may be the moment in
which it is used again, and that would be counted as a failure of the rollout. Ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from typing import IO

from openai import AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletionMessageParam

TIMEOUT = 30.0
QUESTION = "What is 17 + 25? Answer with the number only."


async def ask(client: AsyncOpenAI, model: str, stream: bool) -> str:
    """One chat completion; returns what is wrong with it, or nothing."""
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    try:
        if stream:
            parts = await client.chat.completions.create(model=model, messages=messages, max_tokens=512, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in parts if chunk.choices])
        else:
            whole = await client.chat.completions.create(model=model, messages=messages, max_tokens=512)
            text = whole.choices[0].message.content or ""
    except OpenAIError as error:
        return f"{type(error).__name__}: {error} ({error.__cause__!r})"
    return "" if "42" in text else f"answered {text[:80]!r}"


async def stay_on(name: str, url: str, rate: float, out: IO[str], ended: asyncio.Event) -> None:
    """Ask one endpoint at a constant rate until the end."""
    alone = {"Connection": "close"}
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=TIMEOUT, default_headers=alone)
    model = (await client.models.list()).data[0].id
    number, due = 0, time.monotonic()
    while not ended.is_set():
        start = time.time()
        wrong = await ask(client, model, number % 2 == 1)
        out.write(json.dumps({"host": name, "start": start, "end": time.time(), "wrong": wrong}) + "\n")
        number, due = number + 1, max(due + 1 / rate, time.monotonic())
        await asyncio.sleep(due - time.monotonic())


async def main(rate: float, path: str, targets: dict[str, str]) -> None:
    """Ask all endpoints side by side."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    with open(path, "w", buffering=1, encoding="utf-8") as out:  # noqa: PTH123 - opened once, before the load
        await asyncio.gather(*(stay_on(name, url, rate, out, ended) for name, url in targets.items()))


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), sys.argv[2], dict(argument.split("=", 1) for argument in sys.argv[3:])))
