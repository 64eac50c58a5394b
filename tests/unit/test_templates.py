"""Jinja in settings: refused in every value and key, wrapped or not; what an engine or dockerd evaluates passes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rackwright.loading.ansible.jinja import holds_jinja
from rackwright.loading.ansible.templates import PLAIN, SECRET
from rackwright.loading.validate import validate
from rackwright.settings.secret import Secret
from tests.unit.test_settings_validate import MODEL

CHAT = "{# ours #}{% for message in messages %}{{ message.role }}: {{ message['content'] }}{% endfor %}"


def problems_of(values: dict[str, Any]) -> list[tuple[str, str, str]]:
    _, problems = validate("h", {**MODEL, **values}, {})
    return [(".".join(map(str, one.path)), one.text, one.code) for one in problems]


@pytest.mark.parametrize("text", ["{{ vault_ngc_key }}", "{{ lookup('env', 'KEY') }}", "x-{% if a %}b", "{# a #}key"])
@pytest.mark.parametrize("wrap", [str, Secret])
@pytest.mark.parametrize("path", ["registry.key", "models.hub_token", "api_key", "endpoints.engine.api_key"])
def test_a_secret_that_names_a_variable_is_refused(text: str, wrap: Any, path: str) -> None:
    value: Any = wrap(text if text.endswith("}") or "#" in text else f"{text}%}}")
    for key in reversed(path.split(".")):
        value = {key: value}
    (problem,) = problems_of(value)
    assert problem == (path, SECRET, "RW0215")


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"docker": {"daemon": {"data-root": "{{ docker_root }}"}}}, "docker.daemon.data-root"),
        ({"docker": {"daemon": {"log-opts": {"tag": "{{ site.Name }}"}}}}, "docker.daemon.log-opts.tag"),
        ({"docker": {"daemon": {"log-opts": {"tag": "{{ 'a'.Upper }}"}}}}, "docker.daemon.log-opts.tag"),
        ({"docker": {"daemon": {"data-root": "{{.Name}}"}}}, "docker.daemon.data-root"),
        ({"docker": {"daemon": {"{{ name }}": {}}}}, "docker.daemon.{{ name }}"),
        ({"docker": {"daemon": {"labels": [{"a": ["{{ x }}"]}]}}}, "docker.daemon.labels.0.a.0"),
        ({"arguments": ["--max-num-seqs", "{{ seqs }}"]}, "arguments.1"),
        ({"arguments": ["--chat-template={{ vault_messages }} messages"]}, "arguments.0"),
        ({"arguments": ["{{ lookup('file', 'messages') }}"]}, "arguments.0"),
        ({"engine": {"a": {"b": [{"c": "{{ x }}"}]}}}, "engine.a.b.0.c"),
        ({"engine": {"{% if x %}": 1}}, "engine.{% if x %}"),
        ({"endpoints": {"arguments": {"image": "{{ registry }}/x:1"}}}, "endpoints.arguments.image"),
        ({"endpoints": {"daemon": {"arguments": ["{{ x }}"]}}}, "endpoints.daemon.arguments.0"),
        ({"environment": {"A": "{{ x }}"}}, "environment.A"),
        ({"proxy": {"http": "http://u:{{ vault_proxy }}@proxy:3128"}}, "proxy.http"),
        ({"mirrors": {"hub": "https://{{ hub }}"}}, "mirrors.hub"),
        ({"drain_hook": ["a", "{{ x }}"]}, "drain_hook.1"),
        ({"rollout": {"hooks": {"plan": [{"command": ["{{ x }}"]}]}}}, "rollout.hooks.plan.0.command.0"),
        ({"registry": "{{ registry }}"}, "registry"),
        ({"registry": {"user": "{{ user"}}, "registry.user"),
    ],
)
def test_jinja_is_refused_wherever_it_stands(values: dict[str, Any], path: str) -> None:
    assert (path, PLAIN, "RW0215") in problems_of(values)


@pytest.mark.parametrize(
    "values",
    [
        {"arguments": ["--chat-template", CHAT]},
        {"arguments": [f"--chat-template={CHAT}"]},
        {"docker": {"daemon": {"log-opts": {"tag": "{{.ImageName}}/{{ .ID }}/{{ (.ExtraAttributes nil).SITE }}"}}}},
        {"arguments": ["--hf-overrides", '{"a":{"b":{"c":1}}}']},
        {"environment": {"FORMAT": "%{time} {level}"}},
        {"registry": {"key": Secret("a{b}c%d#e}}f{{g")}},
    ],
)
def test_what_other_programs_evaluate_and_plain_braces_pass(values: dict[str, Any]) -> None:
    assert [code for _, _, code in problems_of(values) if code == "RW0215"] == []


@pytest.mark.parametrize("part", ["{{", "{%", "{#", "}}", "{"])
def test_a_text_of_a_megabyte_is_judged_at_once(part: str) -> None:
    began = time.process_time()
    holds_jinja("x" + part * 500_000)
    assert time.process_time() - began < 1
