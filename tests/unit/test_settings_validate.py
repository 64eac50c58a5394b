"""Every message about a wrong setting, exactly as a user reads it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rackwright.loading.validate import validate
from rackwright.loading.wording import PATTERNS
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret

MODEL = {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}}


def problem_texts(values: dict[str, Any]) -> list[str]:
    """Problems of a host that has a model, as `key: text`."""
    _, problems = validate("h", {**MODEL, **values}, {})
    return [f"{'.'.join(map(str, problem.path))}: {problem.text}" for problem in problems]


VAULT = "secrets go into registry.key, models.hub_token, notify.url, notify.header, gateway.certificate_key and api_key"

REPOSITORY = "a repository of the hub, as openai/gpt-oss-120b"
PATH = "an absolute path of letters, digits and ._@+-"
KINDS = "'tensorrt-llm', 'vllm' or 'sglang'"
IMAGE = "an image with its tag, as nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6 (a digest goes into image_digest)"
YAML_FILE = "a file name that ends in .yaml or .yml, without folders"
NAME = "a name of small letters, digits and _- of at most 63"

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"docker": {"usr": ["ops"]}}, "docker.usr: unknown key (did you mean users?)"),
    ({"qwertz": 1}, "qwertz: unknown key"),
    ({"proxy": {"qwertz": "x"}}, "proxy.qwertz: unknown key: proxy takes http, https, no_proxy"),
    ({"endpoints": {"a": {"qwertz": 1}}}, "endpoints.a.qwertz: unknown key"),
    ({"ssh_usr": "ops"}, "ssh_usr: unknown key (did you mean ssh_user?)"),
    ({"hardware": {"gpu_cont": 8}}, "hardware.gpu_cont: unknown key (did you mean gpu_count?)"),
    ({"model": {"repository": "a/b", "mnt": "/x"}}, "model.mount: is missing"),
    ({"port": "four"}, "port: must be a whole number, not 'four'"),
    ({"port": 0}, "port: must be greater than or equal to 1, not 0"),
    ({"network": "brige"}, "network: must be 'bridge' or 'host' (did you mean bridge?), not 'brige'"),
    ({"environment": {"TRTLLM_ENABLE_PDL": 1}}, "environment.TRTLLM_ENABLE_PDL: must be text; put it in quotes, not 1"),
    ({"image_digest": "abc"}, "image_digest: must be sha256: and 64 hexadecimal digits, not 'abc'"),
    ({"engine": ["a"]}, "engine: must be a mapping of `key: value` lines"),
    ({"model": "a/b"}, "model: must be a mapping of `key: value` lines, not 'a/b'"),
    ({"model": {"repository": "gpt-oss", "mount": "/x"}}, f"model.repository: must be {REPOSITORY}, not 'gpt-oss'"),
    ({"model": {"repository": "a/b", "mount": "x"}}, f"model.mount: must be {PATH}, not 'x'"),
    ({"engine_kind": "trtllm"}, f"engine_kind: must be {KINDS} (did you mean tensorrt-llm?), not 'trtllm'"),
    ({"image": "r/x"}, f"image: must be {IMAGE}, not 'r/x'"),
    ({"image": None}, "image: must not be empty"),
    ({"engine_file": "../a.yaml"}, f"engine_file: must be {YAML_FILE}, not '../a.yaml'"),
    ({"endpoint_name": "LLM"}, f"endpoint_name: must be {NAME}, not 'LLM'"),
    ({"endpoints": {"A": {}}}, f"endpoints.A: must be {NAME}, not 'A'"),
    ({"rollout": {"wave": "half"}}, "rollout.wave: must be a number from 1 on, or a part from 1% on, not 'half'"),
    ({"harmony": "perhaps"}, "harmony: must be true or false, not 'perhaps'"),
    ({"load_timeout": 1.5}, "load_timeout: must be a whole number, not 1.5"),
    (
        {"models": {"hub_token": "hf_a"}, "mirrors": {"hub": "http://hub.example.com"}},
        "mirrors.hub: is reached without TLS, and models.hub_token would go there in clear: write https://",
    ),
    ({"docker": {"users": "ops"}}, "docker.users: must be a list, as [a, b], not 'ops'"),
    ({"allow_from": ["10.0.0.0/33"]}, "allow_from.0: must be a network such as 10.0.0.0/8, not '10.0.0.0/33'"),
    (
        {"allow_from": "everybody"},
        "allow_from: must be private, any, or a list of networks such as [10.0.0.0/8], not 'everybody'",
    ),
    (
        {"allow_from": []},
        "allow_from: an empty list would let no client in; write any to open the port to everybody, or leave it out",
    ),
    (
        {"bind": "somewhere"},
        "bind: must be an address of the host, as 127.0.0.1, 0.0.0.0 for IPv4, or :: for IPv6, not 'somewhere'",
    ),
    ({"gpus": "alll"}, "gpus: must be all, or a list of GPU numbers such as [0, 1], not 'alll'"),
    ({"gpus": [-1]}, "gpus: must be all, or a list of GPU numbers such as [0, 1]"),
    ({"gpus": []}, "gpus: must be all, or a list of GPU numbers such as [0, 1]"),
    ({"endpoints": {"a": {"prt": 1}}}, "endpoints.a.prt: unknown key (did you mean port?)"),
    ({"endpoints": {"a": {"engine": 5}}}, "endpoints.a.engine: must be a mapping of `key: value` lines, not 5"),
    ({"ssh_port": 99999}, "ssh_port: must be less than or equal to 65535, not 99999"),
    ({"_sudo_user": "bob"}, "_sudo_user: must be 'root', not 'bob'"),
    (
        {"ssh_strict_host_key_checking": "no"},
        "ssh_strict_host_key_checking: must be 'yes' or 'accept-new', not 'no'",
    ),
    (
        {"ssh_password": "x"},
        "ssh_password: passwords are refused, since pyinfra prints them at --debug: use an SSH key or an agent",
    ),
    (
        {"ansible_ssh_common_args": "-L 1:localhost:2"},
        "ansible_ssh_common_args: -L is not understood here: "
        "write the same into ~/.ssh/config, which Ansible reads too",
    ),
    (
        {"ansible_ssh_extra_args": "-o ProxyCommand='ssh {{ bastion }}'"},
        "ansible_ssh_extra_args: Jinja is not evaluated here: write the value itself",
    ),
    ({"image": "{{ registry }}/x:1"}, "image: Jinja is not evaluated here: write the value itself"),
    (
        {"environment": {"TOKEN": Secret("s3cret")}},
        "environment.TOKEN: a vault value is not taken here, since it would show in `docker inspect`; " + VAULT,
    ),
    (
        {"engine": {"a": [Secret("s3cret")]}},
        "engine.a.0: a vault value is not taken here, since it would show in files and messages; " + VAULT,
    ),
    (
        {"port": Secret("8000")},
        "port: a vault value is not taken here, since it would show in files and messages; " + VAULT,
    ),
]


@pytest.mark.parametrize(("values", "message"), WRONG, ids=[message.split(":")[0] for _, message in WRONG])
def test_the_message(values: dict[str, Any], message: str) -> None:
    assert message in problem_texts(values)
    assert "s3cret" not in "".join(problem_texts(values))


def test_every_pattern_of_the_settings_has_words() -> None:
    found = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(HostSettings.model_json_schema())))
    assert {json.loads(pattern) for pattern in found} <= set(PATTERNS)
    assert found


def test_all_problems_come_at_once() -> None:
    assert len(problem_texts({"prt": 1, "network": "x", "hardware": {"gpu_count": 0}})) == 3


def test_one_mistake_is_told_once() -> None:
    for values, _ in WRONG:
        if "mnt" not in str(values):
            assert len(problem_texts(values)) == 1, values


def test_a_host_without_a_model_has_no_endpoint() -> None:
    settings, problems = validate("h", {}, {})
    assert (settings and settings.all_endpoints, problems) == ({}, [])


def test_the_text_for_an_endpoint_without_a_model() -> None:
    _, (problem,) = validate("h", {"endpoints": {"a": MODEL, "b": {}}}, {})
    assert problem.text == "endpoint b has no model: set `model:` in group_vars or host_vars"


def test_keys_of_the_site_pass_when_it_names_them() -> None:
    assert problem_texts({"ntp_server": "a"}) == ["ntp_server: unknown key"]
    assert problem_texts({"ntp_server": "{{ x }}", "own_keys": ["ntp_*"]}) == []


def test_other_ansible_variables_pass() -> None:
    assert problem_texts({"ansible_python_interpreter": "{{ x }}"}) == []


def test_secrets_are_taken_where_the_settings_take_them() -> None:
    settings, problems = validate(
        "h", {**MODEL, "models": {"hub_token": Secret("a")}, "registry": {"key": Secret("b")}}, {}
    )
    assert problems == []
    assert settings is not None
    assert settings.models.hub_token == Secret("a")
    assert settings.registry.key == Secret("b")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"endpoints": {"a": {}}}, "RW0110"),
        ({"models": {"hub_token": Secret("hf_x")}, "mirrors": {"hub": "http://hub.example.com"}}, "RW0111"),
        ({**MODEL, "endpoints": {"a": {"replicas": 2}, "a-1": {}}}, "RW0112"),
        ({**MODEL, "endpoint_name": "boot"}, "RW0113"),
        ({**MODEL, "replicas": 2, "gpus": [0]}, "RW0114"),
        ({**MODEL, "replicas": 8, "port": 65530}, "RW0115"),
    ],
)
def test_each_kind_of_misfit_has_a_code_of_its_own(values: dict[str, Any], code: str) -> None:
    _, problems = validate("h1", values, {})
    assert [problem.code for problem in problems] == [code]


TYPO = "engine.max_bacth_size"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"alow_from": ["10.0.0.0/8"]}, ["alow_from", TYPO]),
        ({"rollout": {"baek": 5}, "frewall": {}}, ["frewall", "rollout.baek", TYPO]),
        ({"endpoints": {"a": {"prot": 8001}}}, ["endpoints.a.prot", TYPO]),
        ({"engin_kind": "vllm"}, ["engin_kind"]),
        ({"profil": "h200_vllm"}, ["profil"]),
        ({"alow_from": [], "port": "four"}, ["alow_from", "port"]),
    ],
)
def test_an_engines_typo_is_reported_beside_unknown_keys_and_only_where_the_engine_is_sure(
    values: dict[str, Any], found: list[str]
) -> None:
    texts = problem_texts({**values, "engine": {"max_bacth_size": 4}})
    assert [text.partition(": ")[0] for text in texts] == found
    assert all("did you mean" in text for text in texts if "four" not in text)
