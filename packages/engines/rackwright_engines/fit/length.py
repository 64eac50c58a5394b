"""A context that is longer than the model's own, which vLLM and SGLang refuse at their start."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright_engines.data import table
from rackwright_engines.finding import Finding
from rackwright_engines.fit.sizes import EngineOptions
from rackwright_engines.serving import Serving

CODE = "RW0363"
ALLOWED = {"vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"}
"""The variable that turns the refusal into a warning: vllm/config/model.py, sglang/srt/configs/model_config.py."""
OVERRIDES = frozenset({"hf-overrides", "rope-scaling", "rope-theta", "hf-config-path", "json-model-override-args"})
"""Options that may make another length of the model's."""
ON = frozenset({"1", "true", "yes", "y"})


def check_length(endpoint: Serving, plan: EngineOptions) -> Iterator[Finding]:
    """Refuse a context above the one in the config.json of a model that is known."""
    model = endpoint.model.repository if endpoint.model else ""
    limit = next((int(row["context"]) for row in table("models") if row["repository"] == model), 0)
    wanted = plan.number("sequence", 0)
    if plan.engine_kind not in ALLOWED or not 0 < limit < wanted or OVERRIDES & set(plan.options):
        return
    name = ALLOWED[plan.engine_kind]
    if str(endpoint.environment.get(name, "")).lower() not in ON:
        more = f"to serve longer prompts anyway, set `environment: {{{name}: '1'}}`"
        text = f"{wanted} is more than {model} has, {limit}; {more}"
        yield Finding(plan.path("sequence"), text, code=CODE)
