"""Constant load through gateways, from the real OpenAI client, one JSON line a request.

    python -m tests.lab.gateway_load OUT STREAM LONG HOSTS URL... <<<KEY

Each gateway (URL) gets one short request after the other, and a stream of STREAM tokens every 30 seconds; the first
one gets HOSTS streams of LONG tokens at the beginning: it gives each host one. Nothing is tried twice.
Ends on SIGTERM, when the streams have ended; a second SIGTERM cuts them.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO

from openai import AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletionMessageParam

MODEL = "gpt-oss-120b"
EACH = 30.0
"""Seconds from one stream to the next."""
PAUSE = 0.3
"""Seconds between two short requests."""
COUNT: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Count from 1 to 1900."}]


@dataclass(frozen=True)
class LoadRequest:
    """A request: what it was, when (epoch seconds), its id in the gateway's log, and what was wrong with its answer."""

    gateway: str
    kind: str
    start: float
    end: float
    id: str
    wrong: str


@dataclass(frozen=True)
class Load:
    """The requests of one gateway's clients."""

    gateway: str
    client: AsyncOpenAI
    out: IO[str]
    ended: asyncio.Event

    async def ask(self, kind: str, tokens: int) -> None:
        """Send a request, and write what came of it. kind: `short`, or that of a stream."""
        start, request, wrong = time.time(), "", ""
        try:
            request, wrong = await (self._short(tokens) if kind == "short" else self._stream(tokens))
        except OpenAIError as error:
            wrong = f"{type(error).__name__}: {error} ({error.__cause__!r})"
        done = LoadRequest(self.gateway, kind, start, time.time(), request, wrong)
        self.out.write(json.dumps(asdict(done)) + "\n")

    async def _short(self, tokens: int) -> tuple[str, str]:
        raw = await self.client.chat.completions.with_raw_response.create(
            model=MODEL, messages=COUNT, max_tokens=tokens
        )
        ends = [choice.finish_reason for choice in raw.parse().choices]
        return raw.headers.get("x-request-id", ""), "" if ends == ["length"] else f"answered {ends}"

    async def _stream(self, tokens: int) -> tuple[str, str]:
        parts = await self.client.chat.completions.create(model=MODEL, messages=COUNT, max_tokens=tokens, stream=True)
        request = parts.response.headers.get("x-request-id", "")
        end = ""
        try:
            async for part in parts:
                end = end or "".join(choice.finish_reason or "" for choice in part.choices)
        except Exception as error:
            # The client passes on what its HTTP library raises when a connection breaks off.
            return request, f"cut: {error!r}"
        return request, "" if end else "cut: no end"

    async def short_ones(self) -> None:
        """Send short requests, one after the other, until the end."""
        while not self.ended.is_set():
            await self.ask("short", 4)
            await self.pause(PAUSE)

    async def streams(self, tokens: int) -> None:
        """Begin streams until the end, and wait for all."""
        async with asyncio.TaskGroup() as group:
            while not self.ended.is_set():
                group.create_task(self.ask("stream", tokens))
                await self.pause(EACH)

    async def pause(self, seconds: float) -> None:
        """Wait, or until the end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), seconds)


def _client(url: str, key: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/{MODEL}/v1", api_key=key, max_retries=0, timeout=900)


async def main(path: str, stream: int, long: int, hosts: int, urls: Sequence[str], key: str) -> None:
    """Ask all gateways side by side."""
    ended = asyncio.Event()
    loop, whole = asyncio.get_running_loop(), asyncio.current_task()
    assert whole is not None
    loop.add_signal_handler(signal.SIGTERM, lambda: whole.cancel() if ended.is_set() else ended.set())
    with open(path, "w", buffering=1, encoding="utf-8") as out:  # noqa: PTH123 - opened once, before the load
        loads = [Load(url, _client(url, key), out, ended) for url in urls]
        async with asyncio.TaskGroup() as group:
            for _ in range(hosts if long else 0):
                group.create_task(loads[0].ask("long", long))
                await asyncio.sleep(0.5)
            for load in loads:
                group.create_task(load.short_ones())
                group.create_task(load.streams(stream))


if __name__ == "__main__":
    path, stream, long, hosts, *urls = sys.argv[1:]
    asyncio.run(main(path, int(stream), int(long), int(hosts), urls, sys.stdin.readline().strip()))
