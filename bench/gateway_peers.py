"""Gateways in front of one engine, each as processes of its own: Rackwright's HAProxy, nginx, LiteLLM's proxy."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackwright.concerns.gateway.haproxy import Locations, config
from rackwright.settings.backend import Backend, Server
from rackwright.settings.gateway import Gateway

ROOT = Path(__file__).parents[1]
KEY = "rk-bench-0000000000000000000000000000000000000"
MODEL = "stub"
LITELLM = Path.home() / ".cache/rackwright/litellm"
"""Environment of LiteLLM: `python3.11 -m venv` and `pip install --require-hashes -r requirements/litellm.txt`."""


@dataclass(frozen=True)
class Way:
    """A way to the engine: its name, port and path, and the process whose CPU counts."""

    name: str
    port: int
    path: str
    pid: int
    tls: ssl.SSLContext | None = None


@contextlib.contextmanager
def bare(folder: Path, port: int) -> Iterator[Way]:
    """Run the engine, and yield its own port."""
    command = [sys.executable, "-m", "bench.gateway_engine", str(port), str(port + 1)]
    with _process(command, folder / "engine.log") as pid:
        yield Way("bare port", port, "/v1/chat/completions", pid)


@contextlib.contextmanager
def rackwright(folder: Path, port: int, engine: int, *, tls: bool) -> Iterator[Way]:
    """Run HAProxy with the file that a deploy writes."""
    program = subprocess.check_output([str(ROOT / "scripts/haproxy")], text=True).strip() + "/bin/haproxy"
    server = Server("gpu01", "llm", engine, engine + 1, None, lambda: "127.0.0.1")
    made = Gateway(bind="127.0.0.1", port=port, tls=tls, allow_from="any")
    at = Locations(str(folder), str(folder), str(folder), "127.0.0.1:9", "")
    text = config(made, [Backend(MODEL, "vllm", (server,))], site=ROOT, version=(2, 6), at=at)
    (folder / "haproxy.cfg").write_text(text)
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    for name in ("limits", "inflight", "models", "expiries", "engine-keys"):
        (folder / f"{name}.map").write_text("")
    (folder / "keys.map").write_text(f"{digest} alice\n")
    context = _certificate(folder / "certificates/gateway.pem") if tls else None
    with _process([program, "-db", "-f", str(folder / "haproxy.cfg")], folder / "haproxy.log") as pid:
        yield Way(f"Rackwright{', TLS' if tls else ''}", port, f"/{MODEL}/v1/chat/completions", pid, context)


NGINX = """\
daemon off; worker_processes auto; error_log {folder}/error.log; pid {folder}/pid;
events {{ worker_connections 8192; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/1;
  uwsgi_temp_path {folder}/2; scgi_temp_path {folder}/3;
  map_hash_bucket_size 256;
  map $http_authorization $client {{ default ""; "Bearer {key}" alice; }}
  upstream engine {{ server 127.0.0.1:{engine}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location = /v1/chat/completions {{
      if ($client = "") {{ return 401; }}
      proxy_pass http://engine; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_set_header Authorization "";
      proxy_buffering off; proxy_request_buffering off;
    }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(folder: Path, port: int, engine: int) -> Iterator[Way]:
    """Run nginx with one key and connections to the engine that stay."""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, key=KEY, engine=engine, port=port))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "install nginx first"
    with _process([program, "-p", str(folder), "-c", str(folder / "nginx.conf")], folder / "nginx.log") as pid:
        yield Way("nginx", port, "/v1/chat/completions", pid)


LITELLM_CONFIG = """\
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "http://127.0.0.1:{engine}/v1", api_key: none}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false}}
"""


@contextlib.contextmanager
def litellm(folder: Path, port: int, engine: int) -> Iterator[Way]:
    """Run LiteLLM's proxy, one worker, without a database."""
    (folder / "config.yaml").write_text(LITELLM_CONFIG.format(model=MODEL, engine=engine, key=f"sk-{KEY}"))
    command = [str(LITELLM / "bin/litellm"), "--config", str(folder / "config.yaml"), "--host", "127.0.0.1"]
    facts = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PATH": f"{LITELLM / 'bin'}:{os.environ['PATH']}"}
    with _process([*command, "--port", str(port)], folder / "litellm.log", **facts) as pid:
        yield Way("LiteLLM", port, "/v1/chat/completions", pid)


def wait_for(way: Way, seconds: float = 120) -> None:
    """Wait until a way gives any answer that is not "no host yet"."""
    url = f"{'https' if way.tls else 'http'}://127.0.0.1:{way.port}/healthz"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=2, context=way.tls).close()
            return
        except urllib.error.HTTPError as error:
            if error.code != 503:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"{way.name} does not answer")


@contextlib.contextmanager
def _process(command: Sequence[str], log: Path, **facts: str) -> Iterator[int]:
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | facts) as one,
    ):
        try:
            yield one.pid
        finally:
            one.terminate()


def _certificate(pem: Path) -> ssl.SSLContext:
    pem.parent.mkdir()
    key = pem.with_name("key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=llm", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", pem], check=True, capture_output=True)
    context = ssl.create_default_context(cafile=pem)
    pem.write_bytes(pem.read_bytes() + key.read_bytes())
    key.unlink()
    return context


PEERS: dict[str, Callable[[Path, int, int], contextlib.AbstractContextManager[Way]]] = {
    "rackwright": lambda folder, port, engine: rackwright(folder, port, engine, tls=False),
    "rackwright-tls": lambda folder, port, engine: rackwright(folder, port, engine, tls=True),
    "nginx": nginx,
    "litellm": litellm,
}
"""The ways that can be measured."""
