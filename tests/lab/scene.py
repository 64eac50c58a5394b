"""One host whose endpoint serves: what tests do to it, and what they see of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.calm import needs_preparing
from tests.lab.conftest import Run, Site
from tests.lab.running import Running, deploying

HOME = "/var/lib/rackwright/endpoints"
DAEMON_JSON = "/etc/docker/daemon.json"


@dataclass(frozen=True)
class Scene:
    """One lived-in host whose endpoint `llm` serves a proven release."""

    site: Site
    host: Host

    def deploy(self, *options: str, **data: Any) -> Run:
        """Run a plain deploy on this host with settings given on the command line."""
        return self.site.deploy(*(options or ("-y",)), *self.words(**data), limit=[self.host.name])

    def ask(self, port: int = 8000) -> str:
        body = {
            "model": "gpt-oss-120b",
            "messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}],
            "max_tokens": 512,
        }
        command = f"curl -sS -H 'Content-Type: application/json' -d @- http://127.0.0.1:{port}/v1/chat/completions"
        answer = json.loads(self.host.run(command, stdin=json.dumps(body)).stdout)
        return str(answer["choices"][0]["message"]["content"])

    def starts(self, endpoint: str = "llm") -> int:
        """Return how often systemd has started the endpoint on this host up to now."""
        command = f"journalctl --sync; journalctl -u rackwright-{endpoint} --no-pager -o cat | grep -c '^Starting '"
        return int(self.host.run(command, check=False).stdout)

    def runs(self, endpoint: str = "llm") -> str:
        """Return the release that the running container was started with."""
        label = '{{index .Config.Labels "rackwright.release"}}'
        return self.host.run(f"docker inspect --format '{label}' rackwright-{endpoint}").stdout.strip()

    def proven(self, endpoint: str = "llm") -> str:
        return self.host.run(f"basename $(readlink {HOME}/{endpoint}/proven)").stdout.strip()

    def wait(self, state: str, endpoint: str = "llm", seconds: int = 60) -> None:
        command = f"[ $(systemctl is-active rackwright-{endpoint}) = {state} ]"
        self.host.run(f"for i in $(seq {seconds * 2}); do {command} && exit 0; sleep 0.5; done; exit 1")

    def words(self, **data: Any) -> list[str]:
        """Return settings as arguments of a command line."""
        return [argument for key, value in data.items() for argument in ("--data", f"{key}={json.dumps(value)}")]

    def deploying(self, **data: Any) -> AbstractContextManager[Running]:
        """Begin a plain run with these settings, and follow it while it runs."""
        return deploying(self.site, self.host.name, *self.words(**data))

    @contextmanager
    def faults(self, *rules: Mapping[str, Any]) -> Iterator[None]:
        self.host.set_engine_faults(*rules)
        try:
            yield
        finally:
            self.host.set_engine_faults()


def serving(site: Site, host: Host, request: pytest.FixtureRequest) -> Scene:
    """Return the host as the tests before left it; it serves the settings when a file begins, and after a failure.

    A test that goes by the wanted release deploys first: most leave the host at another proven one.
    """
    scene = Scene(site, host)
    if needs_preparing(request):
        run = scene.deploy()
        assert run.status == 0, run.output
    return scene


def interval(number: int) -> dict[str, int]:
    """Return a YAML change that one case has for itself."""
    return {"stream_interval": number}


def endpoints(*names: str, b: Mapping[str, Any] | None = None) -> dict[str, Any]:
    four = {"tensor_parallel_size": 4, "moe_expert_parallel_size": 4}
    rows: dict[str, Any] = {
        "a": {"port": 8000, "gpus": [0, 1, 2, 3], "engine": four},
        "b": {"port": 8001, "gpus": [4, 5, 6, 7], "engine": {**four, **(b or {})}},
    }
    return {name: rows[name] for name in names}
