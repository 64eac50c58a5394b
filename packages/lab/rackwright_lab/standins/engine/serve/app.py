"""The HTTP face of a loaded engine: routes, errors, and who may see what."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from .. import __version__, log
from ..dialects import VocabularyError
from ..llmapi import mpi_ranks
from ..versions import within
from . import chat, completions
from .generation import Generation, spoilt
from .protocol import ChatRequest, CompletionRequest
from .state import Engine

Body = TypeVar("Body", bound=BaseModel)


class Server:
    """Handlers over one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def model_id(self) -> str:
        """Return the name under which the model is served, unless a fault gives it another."""
        return str(self.engine.faults.active().get("model_id", self.engine.model_id))

    def healthy(self) -> bool:
        """Tell whether no fault says that it is ill."""
        limit = self.engine.faults.active().get("unhealthy_after_seconds")
        return limit is None or self.engine.age() < float(limit)

    async def health(self, _: Request) -> Response:
        """Answer 200 and nothing, or 503."""
        if self.healthy():
            return Response(status_code=200)
        return PlainTextResponse("LLM is unavailable. Please check the server logs for more details.", 503)

    async def health_generate(self, _: Request) -> Response:
        """Answer 200 after one generation."""
        if not self.healthy():
            return PlainTextResponse("Health check failed: generation failed", 500)
        await self.engine.pace(10)
        return Response(status_code=200)

    async def version(self, _: Request) -> Response:
        """Tell the package's version."""
        return JSONResponse({"version": __version__})

    async def models(self, _: Request) -> Response:
        """List the one model, under the name of its folder."""
        card = {
            "id": self.model_id(),
            "object": "model",
            "created": int(time.time()),
            "owned_by": "tensorrt_llm",
        }
        return JSONResponse({"object": "list", "data": [card]})

    async def metrics(self, _: Request) -> Response:
        """Hand out the iteration statistics; reading drains them."""
        stats = list(self.engine.iterations)
        self.engine.iterations.clear()
        return JSONResponse(stats)

    async def perf_metrics(self, _: Request) -> Response:
        """Hand out the finished requests' metrics; reading drains them."""
        metrics = list(self.engine.performance)
        self.engine.performance.clear()
        return JSONResponse(metrics)

    async def prometheus(self, _: Request) -> Response:
        """Tell totals in Prometheus' text format."""
        totals, name = self.engine.totals, self.model_id()
        rows = [("request_success_total", totals["requests"]), ("generation_tokens_total", totals["tokens"])]
        if within(__version__, since="1.4.0rc1"):
            rows.append(("spec_decode_num_draft_tokens_total", totals["drafted"]))
            rows.append(("spec_decode_num_accepted_tokens_total", totals["accepted"]))
        lines = [f'# TYPE trtllm_{row} counter\ntrtllm_{row}{{model_name="{name}"}} {value}' for row, value in rows]
        times = self.engine.times
        for row, total in (("time_to_first_token", times.first), ("time_per_output_token", times.mean)):
            series = f"trtllm_{row}_seconds"
            lines.append(f"# TYPE {series} histogram")
            lines += [
                f'{series}_{end}{{model_name="{name}"}} {value}'
                for end, value in (("sum", total), ("count", times.requests))
            ]
        return PlainTextResponse("\n".join(lines) + "\n")

    async def chat(self, request: Request) -> Response:
        """Answer a conversation."""
        return await self.answer(request, ChatRequest, chat)

    async def complete(self, request: Request) -> Response:
        """Continue a text."""
        return await self.answer(request, CompletionRequest, completions)

    def invalid(self, error: ValidationError) -> Response:
        """Answer a body that is not a request."""
        return JSONResponse({"error": str(error)}, status_code=400)

    def refused(self, error: Exception) -> Response:
        """Answer a request that cannot be carried out."""
        body = {"object": "error", "message": str(error), "type": "internal_error", "param": None, "code": 400}
        return JSONResponse(body, status_code=400)

    def sampled(self, generation: Generation, temperature: float | None) -> Generation:
        """Return what sampling at a temperature makes of an answer."""
        return spoilt(generation) if self.engine.spoils(temperature) else generation

    async def answer(self, request: Request, model: type[Body], module: Any) -> Response:
        """Answer one request of a kind: `model` reads its body, `module` makes and shapes the answer."""
        self.engine.count_request()
        if mpi_ranks.are_there():
            await asyncio.to_thread(mpi_ranks.take_part)
        try:
            body = model.model_validate_json(await request.body())
        except ValidationError as error:
            return self.invalid(error)
        try:
            generation = self.sampled(module.generate(self.engine, body), getattr(body, "temperature", None))
        except (VocabularyError, ValueError) as error:
            log.emit(f"Error in processing the request: {error}", "E")
            return self.refused(error)
        if getattr(body, "stream", False):
            events = module.stream(self.engine, body, generation)
            return StreamingResponse(events, media_type="text/event-stream")
        return JSONResponse(await module.whole(self.engine, body, generation))


def application(engine: Engine) -> Starlette:
    """Return the web application; some routes exist only when the options ask for them."""
    server = Server(engine)
    routes = [
        Route("/health", server.health),
        Route("/health_generate", server.health_generate),
        Route("/version", server.version),
        Route("/v1/models", server.models),
        Route("/metrics", server.metrics),
        Route("/v1/completions", server.complete, methods=["POST"]),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/perf_metrics", server.perf_metrics),
    ]
    if engine.options.get("return_perf_metrics"):
        routes.append(Route("/prometheus/metrics", server.prometheus))
    return Starlette(routes=routes)
