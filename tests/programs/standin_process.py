"""Stand-ins of vLLM and SGLang as processes, laid out as in their images."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from rackwright.concerns.endpoint.proof.proof_row import Question, Verdict, judge_safely, parse_answer
from rackwright.quality.question_file import SHIPPED, read_questions
from rackwright.quality.requests import request_body
from rackwright_lab.standins.hub_content import REPOSITORIES, Store
from rackwright_lab.standins.rootfs import put_package

GPT_OSS = "openai/gpt-oss-20b"
EAGLE = "nvidia/gpt-oss-120b-Eagle3-throughput"
LONG = "nvidia/gpt-oss-120b-Eagle3-long-context"
LLAMA = "nvidia/Llama-3.1-8B-Instruct-FP4"


@dataclass
class Running:
    """One server."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    faults: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"http://127.0.0.1:{self.port}{path}", timeout=10, trust_env=False)

    def post(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        return httpx2.post(f"http://127.0.0.1:{self.port}{path}", json=body, timeout=20, trust_env=False)

    def chat(self, question: str, model: str, **more: Any) -> httpx2.Response:
        body = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 512, **more}
        return self.post("/v1/chat/completions", body)

    def set_faults(self, *rules: dict[str, Any]) -> None:
        self.faults.write_text(json.dumps({"engine": list(rules)}))

    def wait_ready(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.get("/health").status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"not ready: {self.log.read_text()}")

    def ended(self) -> tuple[int, str]:
        """Return exit status and log of a server that was not meant to live."""
        return self.process.wait(timeout=60), self.log.read_text()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=15)


class Bench:
    """A folder with the packages, an nvidia-smi and models; starts servers and ends what is still running."""

    def __init__(self, folder: Path, engine: str, store: Store, encodings: Path) -> None:
        self.folder, self.engine, self._store, self._encodings = folder, engine, store, encodings
        put_package(folder / "site", "engine", "common", engine)
        (folder / "bin").mkdir()
        smi = folder / "bin/nvidia-smi"
        smi.write_text(
            '#!/bin/sh\n[ "$1" = -L ] || { echo 12.0; exit; }\necho "GPU 0: NVIDIA RTX PRO 6000 (UUID: GPU-0)"\n'
        )
        smi.chmod(0o755)
        self._running: list[Running] = []

    def model(self, repository: str, name: str) -> Path:
        """Lay a repository of the lab's hub down under a name, for a test to damage."""
        target = self.folder / "models" / name
        target.mkdir(parents=True, exist_ok=True)
        for file in self._store.files(REPOSITORIES[repository], 1).values():
            if "/" not in file.name:
                shutil.copyfile(file.path, target / file.name)
        return target

    def yaml(self, text: str, name: str = "options.yaml") -> Path:
        """Write an options file."""
        file = self.folder / name
        file.write_text(text)
        return file

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "site"),
            "TRTLLM_STANDIN_LOAD_SECONDS": "0.3",
            "TIKTOKEN_ENCODINGS_BASE": str(self._encodings),
            **more,
        }

    def python(self, code: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a line of Python as a container of the image would."""
        argv = [sys.executable, "-c", code]
        return subprocess.run(argv, env=self.environment(**more), capture_output=True, text=True, check=False)

    def start(self, *words: str | Path, faults: tuple[dict[str, Any], ...] = (), **more: str) -> Running:
        """Start the server on a free port of loopback, with these words before those for host and port."""
        number, port = len(self._running), free_port()
        run = {
            "vllm": ("-c", "from vllm.entrypoints.cli.main import main; main()", "serve"),
            "sglang": ("-m", "sglang.launch_server"),
        }[self.engine]
        argv = [sys.executable, *run, *map(str, words), "--host", "127.0.0.1", "--port", str(port)]
        log, file = self.folder / f"log{number}", self.folder / f"faults{number}.json"
        environment = self.environment(TRTLLM_STANDIN_FAULTS=str(file), **more)
        file.write_text(json.dumps({"engine": list(faults)}))
        with log.open("w") as stream:
            process = subprocess.Popen(argv, env=environment, stdout=stream, stderr=subprocess.STDOUT, text=True)
        self._running.append(Running(process, port, log, file))
        return self._running[-1]

    def end_all(self) -> None:
        for one in self._running:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()


def ask_row(row: Question, patience: int | None = None) -> Verdict:
    """Run a row's script as a host does, and judge it. patience: seconds for an answer, where a row has a minute."""
    script = row.script if patience is None else row.script.replace("--max-time 60", f"--max-time {patience}")
    output = subprocess.run(["sh", "-c", script], input=row.stdin, capture_output=True, text=True, check=True).stdout
    return judge_safely(row, parse_answer(output.split("\n")))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


QUESTIONS = {"arithmetic-01", "tools-13", "tools-20", "json-05", "language-ar", "context-01"}
"""One of each subject of the shipped set, and one whose tool has answered already."""


def refused_questions(server: Running, engine: str, model: str) -> list[str]:
    """Return what a server says to the shipped questions that it does not take."""
    questions = [question for question in read_questions(SHIPPED) if question.id in QUESTIONS]
    answers = [server.post("/v1/chat/completions", request_body(question, model, engine)) for question in questions]
    assert len(answers) == len(QUESTIONS)
    return [answer.text for answer in answers if answer.status_code != 200]
