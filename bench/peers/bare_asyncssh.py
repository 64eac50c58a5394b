"""One command on every host by asyncssh alone, all in one thread.

Standard input has the hosts as JSON, standard output gets what each printed, by name.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import asyncssh


async def ask(host: dict[str, Any]) -> tuple[str, str]:
    """Log in, run the host's command, and return its name with what it printed."""
    async with asyncssh.connect(
        host["address"],
        host["port"],
        username=host["user"],
        client_keys=[host["key"]],
        known_hosts=host["known_hosts"],
        agent_path=None,
        config=None,
    ) as connection:
        done = await connection.run(host["command"], check=True, errors="replace")
    return host["name"], str(done.stdout)


async def main() -> None:
    """All hosts side by side."""
    json.dump(dict(await asyncio.gather(*map(ask, json.load(sys.stdin)))), sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
