"""A real HAProxy with the gateway's configuration, engines that stream by a clock, and hosts that say the word."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import select
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rackwright.concerns.gateway.files import save_script
from rackwright.concerns.gateway.haproxy import Locations, backend_name, config
from rackwright.settings.backend import Backend, Server
from rackwright.settings.gateway import Gateway

ROOT = Path(__file__).parents[2]
ALICE = "rk-" + "a" * 43
BOB = "rk-" + "b" * 43
ENGINE_KEY = "engine-key-1"
SOON = {"agent-inter 2s": "agent-inter 100ms", "check inter 2s": "check inter 100ms"}
"""Tests wait less between two questions."""


@dataclass
class Engine:
    """An engine that records what reaches it, and a host that says its word."""

    name: str
    port: int = 0
    word_port: int = 0
    answers: str = "ready up"
    """The word of its host."""
    tokens: int = 3
    tick: float = 0.0
    """Seconds between two tokens."""
    first: float = 0.0
    """Seconds before an answer that is not streamed."""
    status: int = 200
    dies: bool = False
    """Whether it ends the connection of each request without an answer."""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, path, headers and body of each."""
    questions: list[str] = field(default_factory=list)
    broken_off: int = 0
    """Streams whose client went before their end."""

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of its requests."""
        return [body for *_, body in self.requests]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding") != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    parts = []
    while size := int(handler.rfile.readline(), 16):
        parts.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(parts)


def _chunk(delta: str) -> bytes:
    choice = {"index": 0, "delta": {"content": delta}, "finish_reason": None}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "stub", "choices": [choice]}
    return f"data: {json.dumps(event)}\n\n".encode()


def _answer(name: str) -> bytes:
    message = {"role": "assistant", "content": f"I am {name}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice]}
    ).encode()


def _handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = _body(self)
            engine.requests.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if engine.dies:
                self.close_connection = True
            elif b'"stream": true' in body or b'"stream":true' in body:
                self._stream()
            else:
                self._whole()

        def do_GET(self) -> None:
            engine.requests.append((self.command, self.path, dict(self.headers), b""))
            self._whole()

        def _whole(self) -> None:
            # A server notices that its client has gone while it works on an answer.
            if engine.first and select.select([self.connection], [], [], engine.first)[0]:
                engine.broken_off += 1
                self.close_connection = True
                return
            answer = _answer(engine.name)
            self.send_response(engine.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for token in range(engine.tokens):
                    time.sleep(engine.tick)
                    self._part(_chunk(f"{engine.name}-{token} "))
                self._part(b"data: [DONE]\n\n")
                self._part(b"")
            except OSError:
                engine.broken_off += 1
                self.close_connection = True

        def _part(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _word_handler(engine: Engine) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            engine.questions.append(self.rfile.readline().decode())
            self.wfile.write(f"{engine.answers}\n".encode())

    return Handler


class _Words(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextlib.contextmanager
def engine(name: str, at: str = "127.0.0.1", **facts: Any) -> Iterator[Engine]:
    """Run an engine and its host's word at an address, on ports of their own unless they are among the facts."""
    made = Engine(name, **facts)
    ports = (at, made.port), (at, made.word_port)
    with _Server(ports[0], _handler(made)) as server, _Words(ports[1], _word_handler(made)) as words:
        made.port, made.word_port = server.server_address[1], words.server_address[1]
        for one in (server, words):
            threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()
            words.shutdown()


def backend(model: str, *engines: Engine, kind: str = "vllm") -> Backend:
    """Return a model that these engines serve."""
    servers = [Server(one.name, "llm", one.port, one.word_port, None, lambda: "127.0.0.1", "gw") for one in engines]
    return Backend(model, kind, tuple(servers))


def free_port() -> int:
    """Return a port of this machine that nothing uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class Running:
    """A HAProxy that runs, its files and its log."""

    port: int
    folder: Path
    program: Path
    tls: bool = False
    log: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the gateway."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def connection(self, timeout: float = 20) -> http.client.HTTPConnection:
        """Return a connection."""
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=str(self.folder / "certificates/gateway.pem"))
        context.check_hostname = False
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)

    def ask(
        self, path: str, body: Any = None, *, key: str = ALICE, method: str = "", headers: Mapping[str, str] = {}
    ) -> Answer:
        """Return the answer of a request."""
        sent = dict(headers) | ({"Authorization": f"Bearer {key}"} if key else {})
        text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(self.connection()) as one:
            one.request(method or ("GET" if body is None else "POST"), path, text, sent)
            return Answer.of(one.getresponse())

    def raw(self, data: bytes, timeout: float = 10) -> bytes:
        """Return what comes back for bytes as they are, until the other end closes or the time is over."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as one:
            with contextlib.suppress(OSError):
                one.sendall(data)
            parts = []
            with contextlib.suppress(OSError):
                while part := one.recv(65536):
                    parts.append(part)
            return b"".join(parts)

    def admin(self, command: str) -> str:
        """Return what the admin socket answers."""
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(self.folder / "admin.sock"))
            one.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: one.recv(65536), b"")).decode()

    def reload(self) -> None:
        """Save the states of the servers, and let a new process take over, as the unit does."""
        script = save_script(str(self.folder / "admin.sock"), str(self.folder / "servers"), str(self.config))
        subprocess.run(["sh", "-c", script], check=True)
        assert self.process
        before = self._pid()
        # A master that is still busy with the reload before takes the signal later, or not at all.
        for _ in range(4):
            self.process.send_signal(signal.SIGUSR2)
            end = time.monotonic() + 8
            while time.monotonic() < end:
                with contextlib.suppress(OSError, IndexError):
                    if self._pid() != before:
                        return
                time.sleep(0.05)
        raise AssertionError("no new process")

    def _pid(self) -> str:
        return self.admin("show info").split("Pid: ")[1].split()[0]

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.folder / "haproxy.cfg"

    def map(self, change: str, name: str, row: str) -> None:
        """Change a map of the running HAProxy: `add` or `del`, its name, and the row."""
        answer = self.admin(f"{change} map {self.folder}/{name}.map {row}")
        assert not answer.strip(), answer

    def lines(self, count: int, seconds: float = 5) -> list[dict[str, Any]]:
        """Return the requests in the log, once there are so many."""
        end = time.monotonic() + seconds
        while len(found := [one for one in self.log if "{" in one]) < count and time.monotonic() < end:
            time.sleep(0.02)
        return [json.loads(one[one.index("{") :]) for one in found]

    def serving(self) -> set[str]:
        """Return the names of the servers that take new requests."""
        rows = [row.split() for row in self.admin("show servers state").splitlines() if row[:1].isdigit()]
        return {row[3] for row in rows if len(row) > 6 and row[5] == "2" and row[6] in ("0", "4")}

    def wait_for(self, *names: str, seconds: float = 8) -> None:
        """Wait until these servers, and no others, take new requests."""
        end = time.monotonic() + seconds
        while self._serving() != set(names):
            assert time.monotonic() < end, f"{self._serving()} serve: {self.output()} {self.log}"
            time.sleep(0.02)

    def _serving(self) -> set[str]:
        try:
            return self.serving()
        except OSError:
            return set()

    def output(self) -> str:
        """Return what HAProxy has printed."""
        return (self.folder / "output").read_text()


@dataclass(frozen=True)
class Answer:
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, answer: http.client.HTTPResponse) -> Answer:
        """Read one."""
        return cls(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error as OpenAI's clients read it."""
        return str(self.json["error"]["code"])


def write_maps(
    folder: Path, keys: Mapping[str, str], limits: Mapping[str, tuple[int, int]], models: Sequence[str]
) -> None:
    """Write the maps: names by key, requests a minute and in flight by name, and the engine's key for each model."""
    hashes = [f"{hashlib.sha256(key.encode()).hexdigest()} {name}\n" for key, name in keys.items()]
    (folder / "keys.map").write_text("".join(hashes))
    (folder / "limits.map").write_text("".join(f"{name} {of[0]}\n" for name, of in limits.items()))
    (folder / "inflight.map").write_text("".join(f"{name} {of[1]}\n" for name, of in limits.items()))
    (folder / "models.map").write_text("bob some\nbob/gpt-oss-120b yes\n" if "bob" in limits else "")
    (folder / "expiries.map").write_text("")
    (folder / "engine-keys.map").write_text("".join(f"{backend_name(model)} {ENGINE_KEY}\n" for model in models))


def certificate(folder: Path) -> None:
    """Make a certificate for 127.0.0.1, with its key in the same file."""
    (folder / "certificates").mkdir(exist_ok=True)
    pem, key = folder / "certificates/gateway.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=llm.example.org", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", pem], check=True, capture_output=True)
    pem.write_bytes(pem.read_bytes() + key.read_bytes())


def locations(folder: Path) -> Locations:
    """Return a folder of a test as everything that HAProxy uses."""
    return Locations(str(folder), str(folder), str(folder), str(folder / "log"), "")


@contextlib.contextmanager
def gateway(
    program: Path,
    folder: Path,
    backends: Sequence[Backend],
    *,
    limits: Mapping[str, tuple[int, int]] = {},
    version: tuple[int, int] = (2, 6),
    changed: Mapping[str, str] | None = None,
    master: bool = False,
    keyed: bool = True,
    up: Sequence[str] | None = None,
    others: Sequence[str] = (),
    **settings: Any,
) -> Iterator[Running]:
    """Run HAProxy with the configuration for these backends, `changed` by exact replacements, until all hosts serve.

    up: the hosts that will serve, where not all do. keyed: False if the engines have no keys.
    """
    port = free_port()
    base = {"bind": "127.0.0.1", "port": port, "tls": False, "names": ("llm.example.org",)}
    made = Gateway.model_validate(base | settings)
    text = config(made, backends, site=ROOT, version=version, at=locations(folder), others=others)
    for old, new in (SOON | dict(changed or {})).items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "haproxy.cfg").write_text(text)
    write_maps(folder, {ALICE: "alice", BOB: "bob"}, limits, [one.model for one in backends if keyed])
    if made.tls:
        certificate(folder)
    if made.acme:
        (folder / "acme").mkdir()
        shutil.copy(folder / "certificates/gateway.pem", folder / "acme/served.pem")
        (folder / "acme/challenges.map").touch()
    running = Running(port, folder, program, made.tls)
    with _log(folder / "log", running.log), _process(program, folder, master) as running.process:
        names = [server.host for one in backends for server in one.servers]
        running.wait_for(*(names if up is None else up))
        yield running


@contextlib.contextmanager
def _process(program: Path, folder: Path, master: bool) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "output").open("w") as output:
        command = [str(program), *(["-W"] if master else ["-db"]), "-f", str(folder / "haproxy.cfg")]
        with subprocess.Popen(command, stdout=output, stderr=output) as process:
            try:
                yield process
            finally:
                process.terminate()


@contextlib.contextmanager
def _log(path: Path, lines: list[str]) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(path))
        one.settimeout(0.1)
        over = threading.Event()

        def read() -> None:
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    lines.append(one.recv(65536).decode())

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
