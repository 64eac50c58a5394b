"""Our own reading on every host as pyinfra's only operation, beside commands.json: nothing is decided by what it says.

What pyinfra itself takes to come to a host and run one command there; no deploy under it can take less.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyinfra import host
from pyinfra.operations import server

COMMANDS: dict[str, str] = json.loads(Path("commands.json").read_text())
server.shell(name="Read the host", commands=[COMMANDS[host.name]])
