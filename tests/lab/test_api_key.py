"""An engine asks its clients for a key that lies in files of root's alone, and a new key is a switch like any other."""

from __future__ import annotations

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.conftest import BIN, Run
from tests.lab.test_leaks import files_with, in_text
from tests.lab.test_profiles import HOME, INVENTORY, ONE, Bench, bench, fresh

pytestmark = pytest.mark.lab
__all__ = ["bench", "fresh"]

KEY, NEXT = "sk-lab-51f3a8c0d2e94b7786aa", "sk-lab-c19e5b7d20f84a6693bb"
VLLM = "rtx_pro_6000_vllm"


def status(host: Host, path: str, key: str | None = None) -> str:
    """How the endpoint answers; the key goes to curl by standard input."""
    line = "curl -s --header @- -o /dev/null -w '%{http_code}' http://127.0.0.1:8000" + path
    return host.run(line, stdin=f"Authorization: Bearer {key}" if key else "", check=False).stdout


def assert_hidden(host: Host, key: str) -> None:
    """In no process, no journal and no description of a container; at rest in two files of root's."""
    at_rest = files_with(host, [key], "/var/lib/rackwright", "/etc", "/run", "/root", "/tmp")
    assert set(at_rest.values()) == {"600:root"}, at_rest
    assert {path.rpartition("/")[0] for path in at_rest} == {f"{HOME}/keys", f"{HOME}/keyed"}
    processes = host.run("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'").stdout
    journal = host.run("journalctl --no-pager -o export | cat -v", timeout=300).stdout
    inspected = host.run("docker inspect rackwright-llm").stdout
    for text in (processes, journal, inspected):
        assert text
        assert in_text(text, [key]) == []


def asked(bench: Bench, key: str, *words: str) -> Run:
    return bench._run(VLLM, {**ONE, "api_key": key}, BIN / "rackwright", *words)


def test_an_endpoint_asks_for_its_key_and_takes_a_new_one(bench: Bench) -> None:
    run = bench.deploy(VLLM, "-vvv", **ONE, api_key=KEY)
    assert run.status == 0, run.output
    assert "proved: its key is asked for: without it /v1/models answers 401" in run.output
    assert "proved: a chat answer" in run.output
    # A host of the lab has no pids controller; tests/unit/test_api_key_rows.py has the row's figures.
    assert "not measured: threads in the container" in run.output
    assert KEY not in run.output
    assert [status(bench.host, path) for path in ("/health", "/v1/models")] == ["200", "401"]
    assert [status(bench.host, "/v1/models", key) for key in (KEY, NEXT)] == ["200", "401"]
    assert_hidden(bench.host, KEY)
    assert bench.deploy(VLLM, **ONE, api_key=KEY).changed == []
    said = asked(bench, KEY, "chat", str(INVENTORY), "What is 17 + 25? Answer with the number only.")
    assert "42" in said.output, said.output

    run = bench.deploy(VLLM, **ONE, api_key=NEXT)
    assert run.status == 0, run.output
    assert "its key changed" in run.output
    assert [status(bench.host, "/v1/models", key) for key in (KEY, NEXT)] == ["401", "200"]
    assert_hidden(bench.host, NEXT)
    assert files_with(bench.host, [KEY], "/var/lib/rackwright", "/run") == {}

    open_again = bench.deploy(VLLM, **ONE)
    assert open_again.status == 0, open_again.output
    assert status(bench.host, "/v1/models") == "200"
    assert files_with(bench.host, [NEXT], "/var/lib/rackwright", "/run") == {}
