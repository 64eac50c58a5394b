"""This machine as a gateway: the product's own configuration in Debian's HAProxy, and clients of it."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.settings.backend import Backend, Server
from rackwright_lab.hosts.host import Host
from tests.lab.conftest import ROOT
from tests.programs.gateway_stubs import ALICE, Running, gateway

ARTEFACTS = ROOT / "artefacts"
MODEL = "gpt-oss-120b"
PATH = "/v1/chat/completions"
INVENTORY = """
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

own = hosts()
plain = {{"gateway": {{"tls": False, "port": 80}}, "paths": own[0][1]["paths"]}}
gateways = [(name, {{"ssh_hostname": address, **plain}}) for name, address in {gateways!r}.items()]
globals().update(build(__file__, {{"lab": own, "gateway": gateways}}, children={{"b200": ["lab"]}}))
"""


def program() -> Path:
    """Return Debian's HAProxy, which is unpacked and not installed; downloads it once."""
    run = subprocess.run([ROOT / "scripts/haproxy"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return Path(run.stdout.strip()) / "bin/haproxy"


def bridge(host: Host) -> str:
    """Return this machine's address on a host's network."""
    return str(next(ipaddress.ip_network(f"{host.address}/24", strict=False).hosts()))


def inventory(folder: Path, gateways: dict[str, str]) -> str:
    """Make an inventory of the lab with gateways, by name and address."""
    path = ARTEFACTS / folder.name / "gateways.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(INVENTORY.format(gateways=gateways))
    return str(path)


@contextlib.contextmanager
def in_front(folder: Path, hosts: Sequence[Host], name: str = "gw") -> Iterator[Running]:
    """Run a gateway in front of the endpoints `llm` of these hosts, until all are in."""
    servers = [Server(one.name, "llm", 8000, 8010, None, lambda at=one.address: at, name) for one in hosts]  # type: ignore[misc]
    same = {text: text for text in ("agent-inter 2s", "check inter 2s")}
    folder.mkdir(exist_ok=True)
    with gateway(program(), folder, [Backend(MODEL, "tensorrt-llm", tuple(servers))], changed=same, up=()) as running:
        running.wait_for(*(one.name for one in hosts), seconds=60)
        yield running


def end_all(running: Running) -> None:
    """Kill a gateway's processes."""
    assert running.process is not None
    first = running.process.pid
    for pid in (first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass
class Clients:
    """Clients of a gateway: streams, and short requests one after the other, with what came of each."""

    gateway: Running
    short: list[str] = field(default_factory=list)
    """Empty for a request that went well."""
    streams: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """How long each stream took."""
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def stream(self, tokens: int) -> None:
        """Begin a stream."""
        self._start(lambda: self._one(self.streams, tokens, stream=True))

    def ask_on(self) -> None:
        """Send short requests until the end."""

        def several() -> None:
            while not self._over.is_set():
                self._one(self.short, 4, stream=False)
                time.sleep(0.2)

        self._start(several)

    def end(self) -> None:
        """Wait until all streams have ended."""
        self._over.set()
        for thread in self._threads:
            thread.join(300)
            assert not thread.is_alive()

    def _start(self, target: Any) -> None:
        self._threads.append(threading.Thread(target=target, daemon=True))
        self._threads[-1].start()

    def _one(self, results: list[str], tokens: int, stream: bool) -> None:
        began = time.monotonic()
        body = {
            "model": MODEL, "stream": stream, "max_tokens": tokens,
            "messages": [{"role": "user", "content": "Tell me a long story."}],
        }  # fmt: skip
        try:
            with contextlib.closing(self.gateway.connection(300)) as one:
                headers = {"Authorization": f"Bearer {ALICE}", "Content-Type": "application/json"}
                one.request("POST", f"/{MODEL}{PATH}", json.dumps(body).encode(), headers)
                answer = one.getresponse()
                text = answer.read()
            well = answer.status == 200 and (b"[DONE]" in text or not stream)
            results.append("" if well else f"{answer.status}: {text[-300:]!r}")
        except OSError as error:
            results.append(repr(error))
        if stream:
            self.seconds.append(time.monotonic() - began)
