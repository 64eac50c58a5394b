"""The flags of `vllm serve`: those of 0.14.1 that guides and profiles use, by hand; else a table's, whole."""

from __future__ import annotations

from pathlib import Path

from ..common import tables
from ..common.flags import Flag, flags
from . import __version__

KV_CACHE_DTYPES = ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla")

_FRONTEND = (
    Flag(("--host",)),
    Flag(("--port",), "int", 8000),
    Flag(("--uvicorn-log-level",), default="info", choices=("debug", "info", "warning", "error", "critical", "trace")),
    *flags("json", "--allowed-origins --allowed-methods --allowed-headers --default-chat-template-kwargs"),
    *flags("texts", "--api-key --middleware --lora-modules"),
    *flags("int", "--api-server-count=-asc --ssl-cert-reqs --max-log-len"),
    *flags("pair", "--disable-uvicorn-access-log --allow-credentials --enable-ssl-refresh", default=False),
    *flags("pair", "--enable-request-id-headers --enable-auto-tool-choice", default=False),
    *flags("pair", "--enable-prompt-tokens-details --enable-force-include-usage", default=False),
    *flags("pair", "--enable-log-outputs --return-tokens-as-token-ids --trust-request-chat-template", default=False),
    *flags("pair", "--enable-server-load-tracking --disable-fastapi-docs --headless", default=False),
    *flags("pair", "--exclude-tools-when-tool-choice-none --enable-log-requests", default=False),
    *flags("text", "--ssl-keyfile --ssl-certfile --ssl-ca-certs --root-path --chat-template --log-config-file --uds"),
    *flags("text", "--chat-template-content-format --response-role --tool-call-parser --tool-parser-plugin"),
    *flags("text", "--tool-server"),
)
_ENGINE = (
    Flag(("--served-model-name",), "texts"),
    Flag(("--dtype",), default="auto", choices=("auto", "bfloat16", "float", "float16", "float32", "half")),
    Flag(("--kv-cache-dtype",), default="auto", choices=KV_CACHE_DTYPES),
    Flag(("--gpu-memory-utilization",), "float", 0.9),
    Flag(("--swap-space",), "float", 4),
    Flag(("--cpu-offload-gb",), "float", 0),
    Flag(("--stream-interval",), "int", 1),
    Flag(("--seed",), "int", 0),
    *flags("text", "--tokenizer --revision --code-revision --tokenizer-revision --hf-config-path --hf-token"),
    *flags("text", "--runner --convert --tokenizer-mode --config-format --load-format --model-impl", default="auto"),
    *flags("text", "--quantization=-q --download-dir --generation-config --reasoning-parser --attention-backend"),
    *flags("text", "--safetensors-load-strategy --distributed-executor-backend --all2all-backend --block-size"),
    *flags("text", "--prefix-caching-hash-algo --scheduling-policy --otlp-traces-endpoint --logits-processor-pattern"),
    *flags("text", "--data-parallel-backend --data-parallel-address --master-addr --performance-mode"),
    *flags("int", "--tensor-parallel-size=-tp --pipeline-parallel-size=-pp --data-parallel-size=-dp", default=1),
    *flags("int", "--max-num-seqs --max-cudagraph-capture-size --max-logprobs --num-gpu-blocks-override"),
    *flags("int", "--max-parallel-loading-workers --max-num-partial-prefills --long-prefill-token-threshold"),
    *flags("int", "--max-loras --max-lora-rank --data-parallel-size-local=-dpl --data-parallel-rank=-dpn --nnodes=-n"),
    *flags("int", "--node-rank=-r --master-port --optimization-level=-O --prefill-context-parallel-size=-pcp"),
    *flags("count", "--max-model-len --max-num-batched-tokens --kv-cache-memory-bytes"),
    *flags("numbers", "--cudagraph-capture-sizes=-cudagraph-sizes"),
    *flags("json", "--speculative-config=-sc --compilation-config=-cc --hf-overrides --model-loader-extra-config"),
    *flags("json", "--override-generation-config --limit-mm-per-prompt --mm-processor-kwargs --additional-config"),
    *flags("json", "--kv-transfer-config --kv-events-config --structured-outputs-config --attention-config"),
    *flags("pair", "--enable-prefix-caching --async-scheduling --enable-chunked-prefill --enable-lora"),
    *flags("pair", "--trust-remote-code --enforce-eager --disable-sliding-window", default=False),
    *flags("pair", "--disable-cascade-attn --skip-tokenizer-init --enable-eplb", default=False),
    *flags("pair", "--enable-expert-parallel=-ep", default=False),
    *flags("pair", "--disable-custom-all-reduce --calculate-kv-scales --disable-log-stats", default=False),
    *flags("pair", "--enable-prompt-embeds --enable-sleep-mode --aggregate-engine-logging", default=False),
    *flags("pair", "--disable-hybrid-kv-cache-manager --disable-chunked-mm-input --enable-dbo", default=False),
)
TABLE = tables.of_version(Path(__file__).parent / "tables", __version__, (*_FRONTEND, *_ENGINE), "pair")
"""What this version has by its own source; None for the one that is written down here."""
FRONTEND = TABLE.frontend if TABLE else _FRONTEND
ENGINE = TABLE.flags if TABLE else _ENGINE
ABSENT = tables.absent((*FRONTEND, *ENGINE), _ENGINE)
"""Flags that another version has: no option of this one, and they keep their defaults."""
