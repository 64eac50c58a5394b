"""The section `notify` of the settings: what is taken, and what is refused before anything is connected."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright.concerns.watch.notify import WEBHOOK, notify_files
from rackwright.loading.validate import validate
from rackwright.settings.secret import Secret

MODEL = {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}}
URL = Secret("https://hooks.example.com/T0/B0/x7Yz")
HEADER = Secret("Authorization: Bearer abcdefgh12345678")


def refused(notify: Any) -> list[tuple[str, str]]:
    _, problems = validate("h1", {**MODEL, "notify": notify}, {})
    return [(problem.code, ".".join(map(str, problem.path))) for problem in problems]


@pytest.mark.parametrize(
    "notify",
    [
        {},
        {"command": "/usr/local/bin/page"},
        {"command": ["/usr/sbin/sendmail", "ops@example.com"], "format": "mail"},
        {"url": URL, "header": HEADER, "per_hour": 5},
        {"url": URL, "format": "slack"},
        {"url": Secret("http://10.0.0.5:9093/api/v2/alerts"), "format": "alertmanager"},
        {"url": URL, "template": '{"t": "<title>", "n": 1}'},
        {"url": Secret("http://127.0.0.1:9/x"), "header": HEADER},
    ],
)
def test_what_makes_sense_is_taken(notify: dict[str, Any]) -> None:
    assert refused(notify) == []


@pytest.mark.parametrize(
    ("notify", "code", "path"),
    [
        ({"command": "/bin/page", "url": URL}, "RW0104", "notify.url"),
        ({"command": "/bin/page", "header": HEADER}, "RW0104", "notify.header"),
        ({"format": "slack"}, "RW0104", "notify.format"),
        ({"url": URL, "format": "mail"}, "RW0104", "notify.format"),
        ({"url": URL, "format": "alertmanager"}, "RW0104", "notify.url"),
        ({"url": URL, "format": "slack", "template": '{"t": "<title>"}'}, "RW0104", "notify.template"),
        ({"url": URL, "template": '{"t": <title>}'}, "RW0104", "notify.template"),
        ({"url": URL, "template": '{"t": "<heading>"}'}, "RW0104", "notify.template"),
        ({"url": URL, "template": '{"t": "always this"}'}, "RW0104", "notify.template"),
        ({"url": Secret("http://10.0.0.5/x"), "header": HEADER}, "RW0104", "notify.header"),
        ({"url": Secret("hooks.example.com/x")}, "RW0212", "notify.url"),
        ({"url": Secret("https://hooks.example.com/a b")}, "RW0212", "notify.url"),
        ({"url": Secret("https://:443/x")}, "RW0212", "notify.url"),
        ({"url": URL, "header": Secret("Bearer abc")}, "RW0212", "notify.header"),
        ({"url": URL, "format": "teams"}, "RW0212", "notify.format"),
        ({"url": URL, "per_hour": 0}, "RW0212", "notify.per_hour"),
        ({"per_day": 5}, "RW0210", "notify.per_day"),
        ({"command": ["page", "--token", "abcdefgh12345678"]}, "RW0324", "notify.command.2"),
    ],
)
def test_nonsense_is_refused_offline(notify: dict[str, Any], code: str, path: str) -> None:
    assert refused(notify) == [(code, path)]


def test_the_address_is_in_one_file_and_it_is_a_secret() -> None:
    settings, _ = validate("h1", {**MODEL, "notify": {"url": URL, "header": HEADER}}, {})
    assert settings is not None
    files = notify_files(settings)
    with_secret = [path for path, text in files.items() if isinstance(text, Secret)]
    assert with_secret == [WEBHOOK]
    assert not any("x7Yz" in str(text) or "abcdefgh" in str(text) for text in files.values())


def test_a_proxy_of_the_hosts_is_the_webhooks_too() -> None:
    proxy = {"https": "http://user:pass@proxy.example.com:3128", "no_proxy": ["10.0.0.0/8"]}
    settings, _ = validate("h1", {**MODEL, "notify": {"url": URL}, "proxy": proxy}, {})
    assert settings is not None
    found = notify_files(settings)[WEBHOOK]
    assert isinstance(found, Secret)
    assert found.unmask().splitlines()[1:] == [
        'proxy = "http://user:pass@proxy.example.com:3128"',
        'noproxy = "10.0.0.0/8"',
    ]


def test_without_the_section_a_host_has_no_sender() -> None:
    settings, _ = validate("h1", MODEL, {})
    assert settings is not None
    assert notify_files(settings) == {}
