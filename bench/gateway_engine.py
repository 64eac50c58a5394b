"""An engine with a fixed clock of tokens: `python -m bench.gateway_engine PORT WORD_PORT`.

Token i leaves it 50 ms + i * 10 ms after the request has arrived, however many others ask, so what a client sees beyond
that is the way between them. Its second port says the word of a host that serves.
"""

from __future__ import annotations

import asyncio
import json
import sys

FIRST, EACH, TOKENS = 0.050, 0.010, 64
"""Seconds until the first token, seconds between two, and their number."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def main() -> None:
    """Serve until the process is ended."""
    asyncio.run(_serve(*map(int, sys.argv[1:3])))


async def _serve(port: int, word_port: int) -> None:
    await asyncio.start_server(_word, "127.0.0.1", word_port, backlog=256)
    server = await asyncio.start_server(_requests, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


async def _word(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"ready up\n")
    await writer.drain()
    writer.close()


async def _requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            arrived = asyncio.get_running_loop().time()
            await reader.readexactly(_length(head))
            await _answer(writer, arrived)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _length(head: bytes) -> int:
    rows = [row.split(b":", 1) for row in head.lower().split(b"\r\n") if b":" in row]
    return next((int(value) for name, value in rows if name == b"content-length"), 0)


async def _answer(writer: asyncio.StreamWriter, arrived: float) -> None:
    writer.write(HEAD)
    for number in range(TOKENS):
        await asyncio.sleep(arrived + FIRST + number * EACH - asyncio.get_running_loop().time())
        writer.write(_chunk(_token(number)))
        await writer.drain()
    writer.write(_chunk("data: [DONE]\n\n") + b"0\r\n\r\n")
    await writer.drain()


def _chunk(text: str) -> bytes:
    data = text.encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def _token(number: int) -> str:
    choice = {"index": 0, "delta": {"content": "a "}, "finish_reason": "stop" if number == TOKENS - 1 else None}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "stub", "choices": [choice]}
    return f"data: {json.dumps(event)}\n\n"


if __name__ == "__main__":
    main()
