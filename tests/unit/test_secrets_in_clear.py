"""A secret where others read it is refused with its right place, and what merely looks like a word is not."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.engines.in_clear import check_secrets
from rackwright.runs.masking import mask
from rackwright.settings.secret import MASK, looks_secret
from tests.unit.test_api_key import settings

VALUE = "s3cr3t-0f9d2c6b8e4a7153"


def found(**own: Any) -> list[tuple[Any, str]]:
    return [(one.path, one.sentence) for one in check_secrets(settings(key=None, **own))]


@pytest.mark.parametrize(
    ("own", "path", "way_out"),
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
        ({"engine": {"api-key": VALUE}}, ("engine", "api-key"), "as api_key"),
        ({"engine": {"api-key": [VALUE]}}, ("engine", "api-key"), "as api_key"),
        ({"engine": {"x": {"hf_token": VALUE}}}, ("engine", "x", "hf_token"), "as models.hub_token"),
    ],
)
def test_a_secret_in_clear_is_refused_where_it_stands(own: dict[str, Any], path: Any, way_out: str) -> None:
    told = found(**own)
    assert [where for where, _ in told][:1] == [path]
    assert way_out in told[0][1]
    assert VALUE not in str(told)


@pytest.mark.parametrize(
    "own",
    [
        {"environment": {"HF_TOKEN_PATH": "/run/token", "MAX_TOKENS": "8192", "A_TOKEN": "", "B_TOKEN": "1"}},
        {"arguments": ["--tokenizer", "/models/sk-something-large", "--max-num-batched-tokens", "8192"]},
        {"arguments": ["--api-key"]},
        {"engine": {"max-num-batched-tokens": 8192, "tokenizer-mode": "auto", "mask_token_id": 5}},
        {"engine": {"speculative-config": '{"model": "/models/sk-something-large", "num_speculative_tokens": 3}'}},
        {"environment": {"URL": "http://proxy.example.com:3128/x@y"}},
    ],
)
def test_words_that_only_sound_like_one_are_not(own: dict[str, Any]) -> None:
    assert found(**own) == []


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
