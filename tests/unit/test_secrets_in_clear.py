"""A secret where others read it is refused with its right place, and what merely looks like a word is not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rackwright.engines.in_clear import check_secrets
from rackwright.masks import MASK
from rackwright.record.masked_changes import mask
from rackwright.settings.secret import looks_secret
from tests.unit.test_api_key import settings

VALUE = "s3cr3t-0f9d2c6b8e4a7153"


def found(**values: Any) -> list[tuple[Any, str]]:
    return [(one.path, one.sentence) for one in check_secrets(settings(key=None, **values))]


@pytest.mark.parametrize(
    ("values", "path", "way_out"),
    [
        ({"arguments": ["--api-key", f"sk-{VALUE}"]}, ("arguments", 0), "as api_key"),
        ({"arguments": [f"--api-key={VALUE}"]}, ("arguments", 0), "as api_key"),
        ({"arguments": ["--hf-token", f"hf_{VALUE}"]}, ("arguments", 0), "as models.hub_token"),
        ({"arguments": ["--x", f"hf_{VALUE}"]}, ("arguments", 0), "as models.hub_token"),
        ({"arguments": ["serve", f"hf_{VALUE}"]}, ("arguments", 1), "as models.hub_token"),
        ({"environment": {"HF_TOKEN": f"hf_{VALUE}"}}, ("environment", "HF_TOKEN"), "as models.hub_token"),
        ({"environment": {"VLLM_API_KEY": VALUE}}, ("environment", "VLLM_API_KEY"), "as api_key"),
        ({"environment": {"DB_PASSWORD": VALUE}}, ("environment", "DB_PASSWORD"), "leave it out"),
        ({"environment": {"X": f"Bearer {VALUE}"}}, ("environment", "X"), "leave it out"),
        ({"environment": {"URL": f"https://me:{VALUE}@x"}}, ("environment", "URL"), "leave it out"),
        ({"arguments": ["--api-key", "12345678-1234-1234"]}, ("arguments", 0), "as api_key"),
        ({"arguments": ["--api-key", "1234567890"]}, ("arguments", 0), "as api_key"),
        ({"arguments": ["--api-key=-abc"]}, ("arguments", 0), "as api_key"),
        ({"arguments": ["--api-key", "true-secret-xx"]}, ("arguments", 0), "as api_key"),
        ({"arguments": ["--x", f"github_pat_{'A1' * 20}"]}, ("arguments", 0), "leave it out"),
        ({"environment": {"URL": f"https://x/y?a=1&token={VALUE}"}}, ("environment", "URL"), "leave it out"),
        ({"environment": {"X": f"Authorization: Token {VALUE}"}}, ("environment", "X"), "leave it out"),
        ({"engine": {"api-key": VALUE}}, ("engine", "api-key"), "as api_key"),
        ({"engine": {"api-key": [VALUE]}}, ("engine", "api-key"), "as api_key"),
        ({"engine": {"x": {"hf_token": VALUE}}}, ("engine", "x", "hf_token"), "as models.hub_token"),
    ],
)
def test_a_secret_in_clear_is_refused_where_it_stands(values: dict[str, Any], path: Any, way_out: str) -> None:
    problems = found(**values)
    assert [where for where, _ in problems][:1] == [path]
    assert way_out in problems[0][1]
    assert VALUE not in str(problems)


NAMES = (
    "AWS_SECRET_ACCESS_KEY",
    "S3_ACCESS_KEY",
    "AZURE_STORAGE_KEY",
    "SSH_PRIVATE_KEY",
    "KEY_PASSPHRASE",
    "REDIS_PASS",
    "DB_PWD",
    "GOOGLE_CREDENTIALS",
    "PGPASSWORD",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_usual_names_of_secrets_are_known(name: str) -> None:
    assert [where for where, _ in found(environment={name: VALUE})] == [("environment", name)]
    assert mask(f"docker run -e {name}={VALUE} x") == f"docker run -e {name}={MASK} x"
    assert mask(f'{{"{name}": "{VALUE}", "port": 1}}') == f'{{"{name}": {MASK}, "port": 1}}'


@pytest.mark.parametrize(
    "values",
    [
        {
            "environment": {
                "GOOGLE_APPLICATION_CREDENTIALS": "/run/key.json",
                "SSH_PRIVATE_KEY": "~/.ssh/id",
                "PWD": "/x",
            }
        },
        {"arguments": ["--compilation-config", '{"pass_config": {"enable_fusion": true}, "passes": ["x"]}']},
        {"engine": {"compilation-config": {"pass_config": {"x": "y"}}, "key_cache": "a", "kv_cache_dtype": "fp8"}},
        {"environment": {"COMPASS": "north", "token_budget": "8192", "KEY_CACHE": "x", "MAX_TOKEN": "8192"}},
        {"arguments": ["--num-speculative-tokens", "3", "--api-key", "--port", "8000"]},
        {"environment": {"HF_TOKEN_PATH": "/run/token", "MAX_TOKENS": "8192", "A_TOKEN": "", "B_TOKEN": "1"}},
        {"arguments": ["--tokenizer", "/models/sk-something-large", "--max-num-batched-tokens", "8192"]},
        {"arguments": ["--api-key"]},
        {"engine": {"max-num-batched-tokens": 8192, "tokenizer-mode": "auto", "mask_token_id": 5}},
        {"engine": {"speculative-config": '{"model": "/models/sk-something-large", "num_speculative_tokens": 3}'}},
        {"environment": {"URL": "http://proxy.example.com:3128/x@y"}},
    ],
)
def test_words_that_only_sound_like_one_are_not(values: dict[str, Any]) -> None:
    assert found(**values) == []


@pytest.mark.parametrize(
    "text",
    [
        f"vllm serve m --api-key sk-{VALUE} --port 8000",
        f"--api-key {VALUE}",
        f'["--api-key", "{VALUE}"]',
        f"curl -H 'Authorization: Bearer {VALUE}' http://x",
        f"https://me:{VALUE}@proxy.example.com:3128/",
        f"api-key: '{VALUE}'",
        f"HF_TOKEN={VALUE}",
        f"curl -u user:{VALUE} http://x",
        f"curl -s --user 'user:{VALUE}' http://x",
        f"curl -H 'Authorization: Token {VALUE}' http://x",
        f"Authorization: {VALUE}",
        f"GET https://x/y?a=1&token={VALUE}&b=2",
        f"--api-key=-{VALUE}",
        f"--api-key 12345678-{VALUE}",
        f"password: 1234567890-{VALUE}",
    ],
)
def test_a_mask_knows_options_headers_and_addresses(text: str) -> None:
    shown = mask(text)
    assert VALUE not in shown
    assert MASK in shown


def test_a_value_alone_is_judged_by_its_beginning() -> None:
    assert looks_secret(f"sk-{VALUE}")
    assert not looks_secret(VALUE)
    assert not looks_secret(f"/models/sk-{VALUE}")


@pytest.mark.parametrize(
    "text",
    [
        "max_num_tokens: 8192, token: 8192; num_speculative_tokens=3",
        '{"pass_config": {"enable_fusion": true}, "max_token": "8192"}',
        "docker run --user 1000:1000 -u 0:0 image",
        "GOOGLE_APPLICATION_CREDENTIALS=/run/key.json PWD=/root",
        "kv_cache: x, key_cache: y, compass: z, passes: 3, tokenizer: auto, token_budget: many",
        "https://x/y?page=2&size=3",
    ],
)
def test_what_counts_or_names_is_shown(text: str) -> None:
    assert mask(text) == text


def test_the_rest_of_an_address_is_shown() -> None:
    assert mask(f"GET https://x/y?a=1&token={VALUE}&b=2") == f"GET https://x/y?a=1&token={MASK}&b=2"
    assert mask(f"Authorization: Bearer {VALUE}") == f"Authorization: Bearer {MASK}"


@pytest.mark.parametrize(
    "part", ["a", "-", "--", "a-", "token", "token ", "token: ", "--x-token ", "curl -u ", "?a_", " "]
)
def test_a_line_of_a_megabyte_is_masked_at_once(part: str) -> None:
    began = time.process_time()
    mask(part * (1_000_000 // len(part)))
    assert time.process_time() - began < 3
