"""The HTTP face of SGLang's server, which listens once the model has loaded, and then warms up."""

from __future__ import annotations

import json
import time

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ..common.bodies import OpenChatRequest, OpenCompletionRequest, Texts
from ..common.counting import CountingEngine, prometheus
from ..common.guard import guard
from ..engine.reply import completion
from ..engine.serve.app import Server
from ..engine.serve.generation import generation_of, plain_tokens
from . import __version__
from .bodies import SglangConversations

_DEFAULT_TOKENS = 128
_OPEN = ("/health", "/metrics")


class SglangServer(Server):
    """Handlers over one engine; `ready` is set once it has answered its own first request."""

    engine: CountingEngine
    ready = False

    def __init__(self, engine: CountingEngine) -> None:
        super().__init__(engine)
        self._chats = SglangConversations(engine.served)
        self._said: set[str] = set()

    def invalid(self, error: ValidationError) -> Response:
        """Answer a body that is not a request."""
        return _failure(str(error))

    def refused(self, error: Exception) -> Response:
        """Answer a request that cannot be carried out."""
        return _failure(str(error))

    async def health(self, _: Request) -> Response:
        """Answer 200 after one generated token; 503 while it warms up (http_server.py:466) and when ill."""
        if not self.ready or not self.healthy():
            return Response(status_code=503)
        await self.engine.pace(1)
        return Response(status_code=200)

    async def models(self, _: Request) -> Response:
        """List the one model."""
        name = self.model_id()
        card = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "sglang", "root": name}
        return JSONResponse({"object": "list", "data": [{**card, "max_model_len": self.engine.longest()}]})

    async def server_info(self, _: Request) -> Response:
        """Tell every option, the version and the scheduler's state, for which the scheduler itself is asked."""
        await self.engine.pace(0)
        counts = self.engine.counts
        rounds = counts["drafts"]
        state = {"avg_spec_accept_length": 1 + counts["accepted"] / rounds} if rounds else {}
        report = {"status": "ready" if self.ready else "starting", "internal_states": [state], "version": __version__}
        return JSONResponse({**self.engine.served, **report})

    async def model_info(self, _: Request) -> Response:
        """Tell which model is served."""
        served = self.engine.served
        paths = {"model_path": served["model_path"], "tokenizer_path": served["tokenizer_path"] or served["model_path"]}
        return JSONResponse({**paths, "is_generation": True, "weight_version": served["weight_version"] or "default"})

    async def metrics(self, _: Request) -> Response:
        """Tell Prometheus the totals."""
        labels, counts = f'model_name="{self.engine.model_id}"', self.engine.counts
        kinds = (("prompt_tokens", "prompt"), ("generation_tokens", "generated"), ("num_requests", "requests"))
        rows = [(f"sglang:{name}_total", "counter", labels, float(counts[key])) for name, key in kinds]
        # Since 0.5.7, every few steps (srt/observability/metrics_collector.py): here with each answer.
        modes = (("prefill_compute", "prompt"), ("decode", "generated"))
        rows += [
            ("sglang:realtime_tokens_total", "counter", f'{labels},mode="{mode}"', float(counts[key]))
            for mode, key in modes
        ]
        times = self.engine.times
        sums = (
            ("time_to_first_token", times.first, times.requests),
            ("inter_token_latency", times.decode, times.tokens),
        )
        for name, total, count in sums:
            rows.append((f"sglang:{name}_seconds_count", "histogram", labels, float(count)))
            rows.append((f"sglang:{name}_seconds_sum", "histogram", labels, total))
        return PlainTextResponse(prometheus(rows))

    async def generate(self, request: Request) -> Response:
        """Continue a text, in SGLang's own form."""
        self.engine.count_request()
        body = json.loads(await request.body())
        sampling = body.get("sampling_params") or {}
        limit = sampling.get("max_new_tokens", _DEFAULT_TOKENS)
        tokens = plain_tokens(completion(body["text"], self.engine.faults.active()))
        made = generation_of("gen", len(plain_tokens(body["text"])), tokens, limit, None)
        made = self.sampled(made, sampling.get("temperature"))
        text, generated = made.text("content"), len(made.tokens)
        # NGRAM drafts from what was said before, and not from the prompt: _update_ngram_cache in ngram_worker.py.
        copied = text in self._said
        await self.engine.pace(generated, copied)
        self._said.add(text)
        self.engine.record(made.id, made.prompt_tokens, generated, copied)
        usage = {"prompt_tokens": made.prompt_tokens, "completion_tokens": generated}
        meta = {"id": made.id, **usage, **self._verified(generated, copied)}
        return JSONResponse({"text": text, "meta_info": meta})

    def _verified(self, generated: int, copied: bool) -> dict[str, int]:
        """Tell how often drafts were verified (managers/tokenizer_manager.py); the first token needs no draft."""
        steps, _ = self.engine.drafted(generated, copied)
        return {"spec_verify_ct": max(0, steps - 1)} if self.engine.draft_length else {}

    async def chat(self, request: Request) -> Response:
        """Answer a conversation."""
        return await self.answer(request, OpenChatRequest, self._chats)

    async def complete(self, request: Request) -> Response:
        """Continue a text."""
        return await self.answer(request, OpenCompletionRequest, Texts())


def _failure(message: str) -> Response:
    body = {"object": "error", "message": message, "type": "BadRequest", "param": None, "code": 400}
    return JSONResponse(body, status_code=400)


def application(server: SglangServer) -> Starlette:
    """Return the web application; /metrics exists only when asked for, /version never."""
    routes = [
        Route("/health", server.health),
        Route("/health_generate", server.health),
        Route("/get_server_info", server.server_info),
        Route("/server_info", server.server_info),
        Route("/get_model_info", server.model_info),
        Route("/model_info", server.model_info),
        Route("/v1/models", server.models),
        Route("/generate", server.generate, methods=["POST"]),
        Route("/v1/completions", server.complete, methods=["POST"]),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
    ]
    if server.engine.served["enable_metrics"]:
        routes.append(Route("/metrics", server.metrics))
    # decide_request_auth (srt/utils/auth.py) leaves nothing open but health and metrics.
    key = server.engine.served["api_key"]
    return guard(Starlette(routes=routes), [key] if key else [], lambda path: not path.startswith(_OPEN))
