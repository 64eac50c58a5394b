"""The HTTP face of vLLM's server."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..common.bodies import UnknownModelError
from ..common.counting import CountingEngine, prometheus
from ..common.guard import guard
from ..engine.serve.app import Server
from ..engine.serve.generation import Generation
from . import __version__
from .bodies import PERMISSIONS, RefusedError, VllmChatRequest, VllmCompletionRequest, VllmConversations, VllmTexts
from .nodes import Nodes

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class VllmServer(Server):
    """Handlers over one engine."""

    engine: CountingEngine

    def __init__(self, engine: CountingEngine, nodes: Nodes) -> None:
        super().__init__(engine)
        self._nodes = nodes
        self._chats = VllmConversations(bool(engine.served["tool_call_parser"]))

    def healthy(self) -> bool:
        """Tell whether nothing is known to be wrong: a rank that is gone is noticed by the next request alone."""
        return super().healthy() and not self._nodes.failure_reported

    async def answer(self, request: Request, model: Any, module: Any) -> Response:
        """Answer one request, or fail it when another node is gone."""
        await asyncio.to_thread(self._nodes.take_part)
        if self._nodes.lost:
            self._nodes.failure_reported = True
            return _failure(
                "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                500,
                "InternalServerError",
            )
        return await super().answer(request, model, module)

    def invalid(self, error: ValidationError) -> Response:
        """Answer a body that is not a request."""
        return _failure(str(error), 400, "Bad Request")

    def refused(self, error: Exception) -> Response:
        """Answer a request that cannot be carried out."""
        if isinstance(error, UnknownModelError):
            return _failure(str(error), 404, "NotFoundError", "model")
        param = error.param if isinstance(error, RefusedError) else None
        return _failure(str(error), 400, "BadRequestError", param)

    async def version(self, _: Request) -> Response:
        """Tell the package's version."""
        return JSONResponse({"version": __version__})

    async def load(self, _: Request) -> Response:
        """Tell how many requests are being worked on."""
        return JSONResponse({"server_load": 0})

    async def models(self, _: Request) -> Response:
        """List the model under each of its names."""
        served, now = self.engine.served, int(time.time())
        card = {"object": "model", "created": now, "owned_by": "vllm", "root": served["model"], "parent": None}
        card |= {"max_model_len": self.engine.longest(), "permission": [_permission(now)]}
        return JSONResponse({"object": "list", "data": [{"id": name, **card} for name in self.names()]})

    def names(self) -> list[str]:
        """Return the names that the model answers to."""
        given = self.engine.served["served_model_name"] or [self.engine.served["model"]]
        return [self.model_id(), *given[1:]]

    async def metrics(self, _: Request) -> Response:
        """Tell Prometheus the totals."""
        return Response(prometheus(_rows(self.engine)), media_type=_PROMETHEUS)

    async def chat(self, request: Request) -> Response:
        """Answer a conversation."""
        return await self.answer(request, VllmChatRequest, _Named(self, self._chats))

    async def complete(self, request: Request) -> Response:
        """Continue a text."""
        return await self.answer(request, VllmCompletionRequest, _Named(self, VllmTexts()))


class _Named:
    """Answers only requests for a model that is served."""

    def __init__(self, server: VllmServer, kind: Any) -> None:
        self._server, self._kind = server, kind
        self.whole, self.stream = kind.whole, kind.stream

    def generate(self, engine: CountingEngine, request: Any) -> Generation:
        if request.model is not None and request.model not in self._server.names():
            raise UnknownModelError(f"The model `{request.model}` does not exist.")
        made: Generation = self._kind.generate(engine, request)
        return made


def _permission(now: int) -> dict[str, Any]:
    return {"id": f"modelperm-{uuid.uuid4().hex}", "object": "model_permission", "created": now, **PERMISSIONS}


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, status_code=error.status_code)


def _failure(message: str, code: int, kind: str, param: str | None = None) -> Response:
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return JSONResponse(body, status_code=code)


def _rows(engine: CountingEngine) -> list[tuple[str, str, str, float]]:
    labels, counts = f'engine="0",model_name="{engine.model_id}"', engine.counts
    rows: list[tuple[str, str, str, float]] = [
        ("vllm:num_requests_running", "gauge", labels, 0),
        ("vllm:num_requests_waiting", "gauge", labels, engine.faults.active().get("requests_waiting", 0)),
        ("vllm:kv_cache_usage_perc", "gauge", labels, 0),
        ("vllm:prompt_tokens_total", "counter", labels, counts["prompt"]),
        ("vllm:generation_tokens_total", "counter", labels, counts["generated"]),
        # One observation an iteration: vllm/v1/metrics/loggers.py.
        ("vllm:iteration_tokens_total_count", "histogram", labels, counts["steps"]),
        ("vllm:request_success_total", "counter", f'{labels},finished_reason="stop"', counts["requests"]),
    ]
    times = engine.times
    for name, total in (
        ("time_to_first_token_seconds", times.first),
        ("request_decode_time_seconds", times.decode),
        ("request_generation_tokens", times.tokens),
    ):
        rows.append((f"vllm:{name}_count", "histogram", labels, times.requests))
        rows.append((f"vllm:{name}_sum", "histogram", labels, total))
    if not engine.draft_length:
        return rows
    drafted = [("drafts", "drafts"), ("draft_tokens", "proposed"), ("accepted_tokens", "accepted")]
    rows += [(f"vllm:spec_decode_num_{name}_total", "counter", labels, counts[key]) for name, key in drafted]
    each = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    accepted = [(at, engine.positions[at]) for at in range(engine.draft_length)]
    return rows + [(each, "counter", f'{labels},position="{at}"', count) for at, count in accepted]


def application(engine: CountingEngine, nodes: Nodes) -> Starlette:
    """Return the web application."""
    server = VllmServer(engine, nodes)
    routes = [
        Route("/health", server.health),
        Route("/ping", server.health),
        Route("/load", server.load),
        Route("/version", server.version),
        Route("/v1/models", server.models),
        Route("/metrics", server.metrics),
        Route("/v1/completions", server.complete, methods=["POST"]),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
    ]
    made = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    # AuthenticationMiddleware (entrypoints/openai/api_server.py) guards what begins with /v1 alone.
    return guard(made, engine.served["api_key"] or [], lambda path: path.startswith("/v1"))
