"""An engine asks its clients for a key in files of root's alone, and a new key is a switch like any other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, Run
from tests.lab.products import in_proof
from tests.lab.profiles.groups import ONE
from tests.lab.test_bench import cache_with_standin
from tests.lab.test_leaks import files_with, in_text
from tests.lab.test_profiles import HOME, INVENTORY, Bench, bench
from tests.refused import refusal, row_of

pytestmark = pytest.mark.lab
__all__ = ["bench"]

KEY, NEXT = "sk-lab-51f3a8c0d2e94b7786aa", "sk-lab-c19e5b7d20f84a6693bb"
VLLM = "rtx_pro_6000_vllm"


def status(host: Host, path: str, key: str | None = None) -> str:
    """How the endpoint answers; the key goes to curl by standard input."""
    command = "curl -s --header @- -o /dev/null -w '%{http_code}' http://127.0.0.1:8000" + path
    return host.run(command, stdin=f"Authorization: Bearer {key}" if key else "", check=False).stdout


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


def with_key(bench: Bench, key: str, *words: str) -> Run:
    return bench._run(VLLM, {**ONE, "api_key": key}, BIN / "rackwright", *words)


SQUATTER = """
import http.server, json, time
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked", self.path, self.headers.get("Authorization"), flush=True)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        code = 401 if self.path == "/v1/models" and not self.headers.get("Authorization") else 200
        body = {"data": [{"id": "gpt-oss-120b"}], "version": "0.14.1", "choices": [{"message": {"content": "42"}}]}
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
    do_POST = do_GET
    def log_message(self, *words):
        pass
while True:
    try:
        http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Answers).serve_forever()
    except OSError:
        time.sleep(0.005)
"""
"""Takes the port as soon as it is free, and answers all that an endpoint is asked."""
SQUATTED = texts.TAKEN.format(port=8000, by="python3, pid ")
PORT_FAULT = "another process on its port"


@contextmanager
def squatter(host: Host) -> Iterator[None]:
    """Have an unprivileged user's process wait for the port; no client ever sends it a key."""
    host.run("cat >/tmp/squat.py", stdin=SQUATTER)
    host.run("systemd-run --quiet --collect --unit squatter --uid ops python3 /tmp/squat.py; sleep 0.5")
    try:
        yield
    finally:
        heard = host.run("systemctl stop squatter; journalctl --unit squatter --output cat --no-pager").stdout
    assert "Bearer" not in heard
    assert "/v1/" not in heard, "not even a question"


def test_an_endpoint_asks_for_its_key_and_takes_a_new_one(bench: Bench, tmp_path: Path) -> None:
    run = bench.deploy(VLLM, "-vvv", **ONE, api_key=KEY)
    assert run.status == 0, run.output
    row_of(run.output, "proved", "its key is asked for", "/v1/models", "401")
    row_of(run.output, "proved", "a chat answer")
    # A host of the lab has no pids controller; tests/unit/test_api_key_rows.py has the row's figures.
    row_of(run.output, "not measured", "threads in the container")
    assert KEY not in run.output
    assert [status(bench.host, path) for path in ("/health", "/v1/models")] == ["200", "401"]
    assert [status(bench.host, "/v1/models", key) for key in (KEY, NEXT)] == ["200", "401"]
    assert_hidden(bench.host, KEY)
    assert bench.deploy(VLLM, **ONE, api_key=KEY).changed == []
    answer = with_key(bench, KEY, "chat", str(INVENTORY), "--", "What is 17 + 25? Answer with the number only.")
    assert "42" in answer.output, answer.output

    run = bench.deploy(VLLM, **ONE, api_key=NEXT)
    assert run.status == 0, run.output
    assert "its key changed" in run.output
    assert [status(bench.host, "/v1/models", key) for key in (KEY, NEXT)] == ["401", "200"]
    assert_hidden(bench.host, NEXT)
    assert files_with(bench.host, [KEY], "/var/lib/rackwright", "/run") == {}

    bench.host.run("systemctl stop rackwright-llm")
    with squatter(bench.host):
        answer = with_key(bench, NEXT, "chat", str(INVENTORY), "--", "What is 17 + 25?")
        assert f"is not asked: {SQUATTED}" in answer.output, answer.output
        cache = f"XDG_CACHE_HOME={cache_with_standin(tmp_path)}"
        words = ("env", cache, BIN / "rackwright", "bench", str(INVENTORY), "-y")
        assert "RW1543" in bench._run(VLLM, {**ONE, "api_key": NEXT}, *words).output
        refused = bench.deploy(VLLM, **ONE, api_key=NEXT)
        assert refused.status == 1
        refusal(refused.output, "RW3146", "8000", "python3, pid ", ", user ops, at 0.0.0.0")

    open_again = bench.deploy(VLLM, **ONE)
    assert open_again.status == 0, open_again.output
    assert status(bench.host, "/v1/models") == "200"
    assert files_with(bench.host, [NEXT], "/var/lib/rackwright", "/run") == {}


@in_proof("an endpoint that is stopped shows that no key leaves; here two switches fail")
def test_whoever_takes_the_port_in_a_switch_gets_no_key_and_is_named_as_the_hosts_fault(bench: Bench) -> None:
    assert bench.deploy(VLLM, **ONE, api_key=KEY).status == 0
    with squatter(bench.host):
        run = bench.deploy(VLLM, **ONE, api_key=NEXT)
        assert run.status == 1, run.output
        assert SQUATTED in run.output
        assert "user ops, at 0.0.0.0; next: " in run.output
        assert texts.QUARANTINED.format(host=bench.host.name, why=PORT_FAULT) in run.output
        assert "GPUs inside the container" not in run.output
        assert "proved:" not in run.output
    run = bench.deploy(VLLM, **ONE, api_key=NEXT)
    assert run.status == 0, run.output
    assert status(bench.host, "/v1/models", NEXT) == "200"


@in_proof("the same on the host's own network, where the kernel must say whose the port is")
def test_on_the_hosts_network_too_nobody_else_gets_the_key(bench: Bench) -> None:
    host_network = {**ONE, "network": "host", "bind": "0.0.0.0"}
    assert bench.deploy(VLLM, **host_network, api_key=KEY).status == 0
    with squatter(bench.host):
        run = bench.deploy(VLLM, **host_network, api_key=NEXT)
        assert run.status == 1, run.output
        assert "user ops, at 0.0.0.0; next: " in run.output
        assert texts.QUARANTINED.format(host=bench.host.name, why=PORT_FAULT) in run.output
    assert bench.deploy(VLLM, **host_network, api_key=NEXT).status == 0
    answer = with_key(bench, NEXT, "chat", str(INVENTORY), "--", "What is 17 + 25? Answer with the number only.")
    assert "42" in answer.output, answer.output
