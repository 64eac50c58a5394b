"""Writes docs/monitoring/*.json: Grafana dashboards of the engines and of the fleet, from the descriptions below.

Run it with `python scripts/dashboards.py`; tests/monitoring/test_dashboards.py compares the files with what it writes,
and holds every name against the engines' own lists and a recorded scrape. The JSON is Grafana's classic model, which
Grafana 10 and later import: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "monitoring"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF = '{host=~"$host",endpoint=~"$endpoint"}'
"""The chosen endpoints."""
HOSTS = '{host=~"$host"}'
RATE = "[$__rate_interval]"
WIDTH, HEIGHT = 8, 7
"""Of a panel: three in a row of Grafana's 24 columns."""


@dataclass(frozen=True)
class Query:
    """A query and the legend of its series."""

    expression: str
    legend: str = "{{host}} {{endpoint}}"


@dataclass(frozen=True)
class Panel:
    """One diagram."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    text: str = ""
    kind: str = "timeseries"
    stacked: bool = False


@dataclass(frozen=True)
class Dashboard:
    """One file."""

    name: str
    title: str
    choices: tuple[tuple[str, str], ...]
    """Variables, and the label values that each offers."""
    panels: tuple[Panel, ...]


def rate(name: str, by: str = "host, endpoint", of: str = OF) -> str:
    """Return a counter's increase a second, summed."""
    return f"sum by ({by}) (rate({name}{of}{RATE}))"


def total(name: str, by: str = "host, endpoint") -> str:
    """Return a gauge, summed over ranks and replicas of an endpoint."""
    return f"sum by ({by}) ({name}{OF})"


def quantiles(name: str, *parts: float) -> tuple[Query, ...]:
    """Return quantiles of a histogram over all chosen endpoints."""
    buckets = rate(f"{name}_bucket", "le")
    return tuple(Query(f"histogram_quantile({part}, {buckets})", f"p{part * 100:g}") for part in parts)


def share(part: str, whole: str, by: str = "host, endpoint") -> str:
    """Return one counter's increase as a share of another's."""
    return f"{rate(part, by)} / {rate(whole, by)}"


def by_position(accepted: str, whole: str, label: str) -> Query:
    """Return the acceptance of drafts by their position, of all chosen endpoints."""
    return Query(
        f"{rate(accepted, label)} / ignoring ({label}) group_left sum({rate(whole, 'host')})", f"{{{{{label}}}}}"
    )


def tokens(written: str, read: str) -> Panel:
    """Return the panel of tokens a second."""
    return Panel(
        "Tokens a second",
        "short",
        (Query(rate(written)), Query(f"-{rate(read)}", "{{host}} {{endpoint}} prompt")),
        "Generated above the line, prompts below it.",
    )


HOST_PANELS = (
    Panel(
        "State by the watch",
        "short",
        (
            Query(
                f"max by (host, endpoint, state) (rackwright_endpoint_state{OF} == 1)",
                "{{host}} {{endpoint}} {{state}}",
            ),
        ),
        "What the host's own watch sees. An engine that hangs shows old gauges above.",
    ),
    Panel(
        "Starts and acts, an hour",
        "short",
        (
            Query(f"changes(rackwright_endpoint_start_time_seconds{OF}[1h])", "{{host}} {{endpoint}} starts"),
            Query(f"increase(rackwright_acts_total{OF}[1h])", "{{host}} {{endpoint}} {{act}}"),
        ),
        "Starts of the unit, whatever the reason, and what the watch did.",
    ),
    Panel("Faults of GPUs", "short", (Query(f"rackwright_gpu_faults{HOSTS}", "{{host}}"),)),
)
"""Each engine's dashboard ends with them."""

VLLM = (
    tokens("vllm:generation_tokens_total", "vllm:prompt_tokens_total"),
    Panel(
        "Requests",
        "short",
        (
            Query(total("vllm:num_requests_running"), "{{host}} {{endpoint}} running"),
            Query(
                total("vllm:num_requests_waiting_by_reason", "host, endpoint, reason"),
                "{{host}} {{endpoint}} waits: {{reason}}",
            ),
        ),
    ),
    Panel("Time to first token", "s", quantiles("vllm:time_to_first_token_seconds", 0.5, 0.9, 0.99)),
    Panel("Time between tokens", "s", quantiles("vllm:inter_token_latency_seconds", 0.5, 0.9, 0.99)),
    Panel("Time in the queue", "s", quantiles("vllm:request_queue_time_seconds", 0.5, 0.9, 0.99)),
    Panel(
        "KV cache",
        "percentunit",
        (
            Query(f"max by (host, endpoint) (vllm:kv_cache_usage_perc{OF})", "{{host}} {{endpoint}} in use"),
            Query(
                share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
                "{{host}} {{endpoint}} prefix hits",
            ),
        ),
    ),
    Panel(
        "Drafts accepted, by position",
        "percentunit",
        (
            by_position(
                "vllm:spec_decode_num_accepted_tokens_per_pos_total", "vllm:spec_decode_num_drafts_total", "position"
            ),
        ),
        "Share of drafts whose token at that position was accepted.",
    ),
    Panel(
        "Tokens a draft",
        "short",
        (Query(f"1 + {share('vllm:spec_decode_num_accepted_tokens_total', 'vllm:spec_decode_num_drafts_total')}"),),
        "1 is what the model makes without drafts.",
    ),
    Panel(
        "Preemptions and ends, a second",
        "short",
        (
            Query(rate("vllm:num_preemptions_total"), "{{host}} {{endpoint}} preempted"),
            Query(rate("vllm:request_success_total", "finished_reason"), "{{finished_reason}}"),
        ),
    ),
    Panel(
        "Steps a second",
        "short",
        (Query(rate("vllm:iteration_tokens_total_count")),),
        "0 with requests running: it stands still.",
    ),
    *HOST_PANELS,
)

SGLANG = (
    tokens("sglang:generation_tokens_total", "sglang:prompt_tokens_total"),
    Panel(
        "Requests",
        "short",
        (
            Query(total("sglang:num_running_reqs"), "{{host}} {{endpoint}} running"),
            Query(total("sglang:num_queue_reqs"), "{{host}} {{endpoint}} waiting"),
        ),
    ),
    Panel("Time to first token", "s", quantiles("sglang:time_to_first_token_seconds", 0.5, 0.9, 0.99)),
    Panel("Time between tokens", "s", quantiles("sglang:inter_token_latency_seconds", 0.5, 0.9, 0.99)),
    Panel("Time of a request", "s", quantiles("sglang:e2e_request_latency_seconds", 0.5, 0.9, 0.99)),
    Panel(
        "KV cache",
        "percentunit",
        (
            Query(f"max by (host, endpoint) (sglang:token_usage{OF})", "{{host}} {{endpoint}} in use"),
            Query(f"max by (host, endpoint) (sglang:cache_hit_rate{OF})", "{{host}} {{endpoint}} prefix hits"),
        ),
    ),
    Panel(
        "Drafts",
        "short",
        (
            Query(f"avg by (host, endpoint) (sglang:spec_accept_length{OF})", "{{host}} {{endpoint}} tokens a step"),
            Query(f"avg by (host, endpoint) (sglang:spec_accept_rate{OF})", "{{host}} {{endpoint}} accepted"),
        ),
        "SGLang counts no positions.",
    ),
    Panel(
        "Taken back and aborted, a second",
        "short",
        (
            Query(rate("sglang:num_retracted_requests_total"), "{{host}} {{endpoint}} retracted"),
            Query(rate("sglang:num_aborted_requests_total"), "{{host}} {{endpoint}} aborted"),
        ),
    ),
    Panel(
        "Tokens computed a second",
        "short",
        (Query(rate("sglang:realtime_tokens_total", "host, endpoint, mode"), "{{host}} {{endpoint}} {{mode}}"),),
        "Counted at each step. 0 with requests running: it stands still.",
    ),
    *HOST_PANELS,
)

TRTLLM = (
    tokens("trtllm_generation_tokens_total", "trtllm_prompt_tokens_total"),
    Panel(
        "Requests",
        "short",
        (
            Query(total("trtllm_num_requests_running"), "{{host}} {{endpoint}} running"),
            Query(total("trtllm_num_requests_waiting"), "{{host}} {{endpoint}} waiting"),
            Query(total("trtllm_num_paused_requests"), "{{host}} {{endpoint}} paused"),
        ),
    ),
    Panel("Time to first token", "s", quantiles("trtllm_time_to_first_token_seconds", 0.5, 0.9, 0.99)),
    Panel("Time between tokens", "s", quantiles("trtllm_time_per_output_token_seconds", 0.5, 0.9, 0.99)),
    Panel("Time in the queue", "s", quantiles("trtllm_request_queue_time_seconds", 0.5, 0.9, 0.99)),
    Panel(
        "KV cache",
        "percentunit",
        (
            Query(f"max by (host, endpoint) (trtllm_kv_cache_utilization{OF})", "{{host}} {{endpoint}} in use"),
            Query(f"max by (host, endpoint) (trtllm_kv_cache_hit_rate{OF})", "{{host}} {{endpoint}} hits"),
        ),
    ),
    Panel(
        "Drafts accepted, by position",
        "percentunit",
        (
            Query(
                share(
                    "trtllm_spec_decode_accepted_tokens_total",
                    "trtllm_spec_decode_drafted_tokens_total",
                    "token_position",
                ),
                "{{token_position}}",
            ),
        ),
    ),
    Panel(
        "Tokens a step",
        "short",
        (Query(f"avg by (host, endpoint) (trtllm_spec_decode_acceptance_length{OF})"),),
        "1 is what the model makes without drafts.",
    ),
    Panel(
        "Errors and ends, a second",
        "short",
        (
            Query(rate("trtllm_request_error_total", "http_code"), "HTTP {{http_code}}"),
            Query(rate("trtllm_request_success_total", "finished_reason"), "{{finished_reason}}"),
        ),
    ),
    Panel(
        "Time of a step",
        "s",
        (Query(f"max by (host, endpoint) (trtllm_iteration_latency_seconds{OF})"),),
        "A flat line with requests running: it stands still.",
    ),
    *HOST_PANELS,
)

ALL_TOKENS = " or ".join(
    rate(name)
    for name in ("vllm:generation_tokens_total", "sglang:generation_tokens_total", "trtllm_generation_tokens_total")
)
FLEET = (
    Panel("Releases", "", (Query(f"rackwright_release_info{OF}"),), "What each endpoint points at.", kind="table"),
    Panel(
        "Endpoints by state",
        "short",
        (Query(f"sum by (state) (rackwright_endpoint_state{OF})", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "Endpoints by release",
        "short",
        (Query(f"count by (release) (rackwright_release_info{OF})", "{{release}}"),),
        stacked=True,
    ),
    Panel("Tokens a second", "short", (Query(ALL_TOKENS),), stacked=True),
    Panel(
        "Out of service",
        "short",
        (
            Query(f"rackwright_mark{HOSTS}", "{{host}} {{endpoint}} {{kind}}: {{word}}"),
            Query(f"rackwright_drained{HOSTS} == 1", "{{host}} drained"),
            Query(f"rackwright_release_proven{OF} == 0", "{{host}} {{endpoint}} not proven"),
        ),
        "Marks, drained hosts, and releases that have not proven themselves.",
    ),
    Panel(
        "Starts and acts, an hour",
        "short",
        (
            Query(f"changes(rackwright_endpoint_start_time_seconds{OF}[1h]) > 0", "{{host}} {{endpoint}} starts"),
            Query(f"increase(rackwright_acts_total{OF}[1h]) > 0", "{{host}} {{endpoint}} {{act}}"),
        ),
    ),
    Panel(
        "Since the last look",
        "s",
        (Query(f"time() - rackwright_last_look_time_seconds{HOSTS}", "{{host}}"),),
        "More than 300 s is an alert.",
    ),
    Panel("Since the last proof", "s", (Query(f"time() - rackwright_last_proof_time_seconds{OF}"),)),
    Panel(
        "Runs at work",
        "s",
        (Query(f"rackwright_lease_age_seconds{HOSTS}", "{{host}}"),),
        "How long a run has had each host.",
    ),
    Panel(
        "Faults of GPUs", "short", (Query(f"rackwright_gpu_fault{HOSTS}", "{{host}} {{kind}} {{of}}"),), stacked=True
    ),
    Panel("Repairs of the firewall", "short", (Query(f"rackwright_repairs{HOSTS} > 0", "{{host}}"),)),
)


def _choices(source: str) -> tuple[tuple[str, str], ...]:
    return (("host", f"label_values({source}, host)"), ("endpoint", f"label_values({source}, endpoint)"))


DASHBOARDS = (
    Dashboard("fleet", "Rackwright: fleet", _choices("rackwright_release_info"), FLEET),
    Dashboard("vllm", "Rackwright: vLLM", _choices("vllm:num_requests_running"), VLLM),
    Dashboard("sglang", "Rackwright: SGLang", _choices("sglang:num_running_reqs"), SGLANG),
    Dashboard("tensorrt-llm", "Rackwright: TensorRT-LLM", _choices("trtllm_request_success_total"), TRTLLM),
)


def text_of(dashboard: Dashboard) -> str:
    """Return the file of one dashboard."""
    content = {
        "uid": f"rackwright-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["rackwright"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_data_source(), *(_choice(name, query) for name, query in dashboard.choices)]},
        "panels": list(_panels(dashboard.panels)),
    }
    return json.dumps(content, indent=1) + "\n"


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _choice(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panels(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """Yield the panels, three in a row; a table takes a row of its own."""
    x = y = 0
    for number, panel in enumerate(panels, 1):
        wide = panel.kind == "table"
        width = 3 * WIDTH if wide else WIDTH
        if x + width > 3 * WIDTH:
            x, y = 0, y + HEIGHT
        yield {**_panel(panel, number), "gridPos": {"x": x, "y": y, "w": width, "h": HEIGHT}}
        x += width


def _panel(panel: Panel, number: int) -> dict[str, Any]:
    custom = {"fillOpacity": 20, "stacking": {"mode": "normal"}} if panel.stacked else {"fillOpacity": 0}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "custom": {} if panel.kind == "table" else custom},
            "overrides": [],
        },
        "options": {} if panel.kind == "table" else {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": list(_targets(panel)),
        **(
            {"transformations": [_hidden(("Time", "__name__", "instance", "job", "Value"))]}
            if panel.kind == "table"
            else {}
        ),
    }


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    table = panel.kind == "table"
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        target = {"refId": letter, "datasource": SOURCE, "expr": query.expression, "legendFormat": query.legend}
        yield {**target, "instant": True, "format": "table"} if table else target


def _hidden(names: Iterable[str]) -> dict[str, Any]:
    """Return the change of a table that leaves columns out."""
    return {"id": "organize", "options": {"excludeByName": dict.fromkeys(names, True)}}


def main() -> None:
    """Write the files."""
    for dashboard in DASHBOARDS:
        path = FOLDER / f"{dashboard.name}.json"
        path.write_text(text_of(dashboard))
        print(path)


if __name__ == "__main__":
    main()
