"""A host's sender (concerns/watch/host/notify.j2), as the real script, against receivers on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.watch.notify import RUNTIME, SENDER, WEBHOOK, notify_files
from rackwright.hostside import host_text
from rackwright.loading.validate import validate
from rackwright.paths import ETC, RUN, STATE
from rackwright.settings.message_formats import FORMATS, MessageFormat, Template, filled
from rackwright.settings.secret import Secret
from tests.programs.webhook import Receiver, receiver

MODEL = {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}}


@dataclass
class Sender:
    """A host's folders below one of the test, and its sender."""

    root: Path
    notify: dict[str, Any]

    def __post_init__(self) -> None:
        settings, problems = validate("h1", {**MODEL, "notify": self.notify}, {})
        assert not problems, problems
        assert settings is not None
        files = notify_files(settings)
        (self.root / "etc").mkdir(parents=True, exist_ok=True)
        (self.root / "etc/notify").write_text(self._moved(str(files[SENDER])))
        if WEBHOOK in files:
            config = files[WEBHOOK]
            assert isinstance(config, Secret)
            (self.root / "etc/notify.curl").write_text(config.unmask())

    def _moved(self, text: str) -> str:
        text = text.replace(f"/run/{RUNTIME}", f"{self.root}/run").replace(STATE, f"{self.root}/state")
        return text.replace(ETC, f"{self.root}/etc").replace(f"{RUN}/", f"{self.root}/memory/")

    def tell(self, *calls: str) -> None:
        script = self._moved(host_text("tell.sh")) + "\n" + "\n".join(calls)
        subprocess.run(["sh", "-c", script], check=True, timeout=60)

    def send(self, *arguments: str, path: str = "") -> tuple[int, str]:
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
        words = ["sh", str(self.root / "etc/notify"), *arguments]
        run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert run.stderr == ""
        return run.returncode, run.stdout

    @property
    def waiting(self) -> int:
        return len(list((self.root / "state/events").iterdir()))

    def older(self, seconds: int) -> None:
        """Make the waiting events older than they are."""
        for path in (self.root / "state/events").iterdir():
            then = int(time.time()) - seconds
            path.write_text("".join(f"time={then}\n" if row.startswith("time=") else row for row in lines_of(path)))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def posting(root: Path, hook: Receiver, **more: Any) -> Sender:
    return Sender(root, {"url": Secret(hook.url), **more})


def keys(hook: Receiver) -> list[tuple[str, str]]:
    return [(body["key"], body["state"]) for body in hook.bodies]


def test_an_event_is_posted_once_and_its_end_too(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook, header=Secret("Authorization: Bearer s3cr3t-s3cr3t"))
    host.tell("tell hang hang-llm 'no \"step\" for 130 s'", "tell hang hang-llm again")
    assert host.send() == (0, "")
    host.tell("tell hang hang-llm still")
    assert host.send() == (0, "")
    assert keys(hook) == [("hang-llm", "firing")]
    host.tell("tell_resolved hang hang-llm serves")
    assert host.send() == (0, "")
    host.tell("tell hang hang-llm again")
    host.send()
    assert keys(hook) == [("hang-llm", "firing"), ("hang-llm", "resolved"), ("hang-llm", "firing")]
    path, headers, _ = hook.requests[0]
    assert (path, headers["authorization"]) == ("/hooks/abc", "Bearer s3cr3t-s3cr3t")
    assert (hook.bodies[0]["text"], host.waiting) == ('no "step" for 130 s', 0)


def test_an_end_of_what_no_one_was_sent_is_dropped(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    host.tell("tell_resolved hang hang-llm serves")
    host.send()
    assert (hook.requests, host.waiting) == ([], 0)


def test_what_happens_twice_is_sent_twice(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    host.tell("tell restart restart-llm first", "tell restart restart-llm second")
    host.send()
    assert [body["text"] for body in hook.bodies] == ["first", "second"]


def test_a_drained_host_is_quiet(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    host.tell("tell dead dead-llm x")
    (tmp_path / "state/drained").write_text("reason=RMA\n")
    host.send()
    assert (hook.requests, host.waiting) == ([], 0)


def test_without_a_network_it_is_sent_later_and_the_pause_grows(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    host.tell("tell hang hang-llm x", "tell_resolved hang hang-llm y")
    config = tmp_path / "etc/notify.curl"
    right = config.read_text()
    config.write_text('url = "http://127.0.0.1:9/hooks/abc"\n')
    pauses = []
    for _ in range(3):
        begun = time.monotonic()
        status, _output = host.send()
        assert status == 1
        assert time.monotonic() - begun < 10
        pauses.append(int((tmp_path / "run/retry").read_text().split()[1]))
        assert host.send() == (0, "")  # not due
        (tmp_path / "run/retry").write_text(f"0 {pauses[-1]}\n")
    assert (pauses, host.waiting) == ([30, 60, 120], 2)
    config.write_text(right)
    assert host.send() == (0, "")
    assert keys(hook) == [("hang-llm", "firing"), ("hang-llm", "resolved")]
    assert not (tmp_path / "run/retry").exists()


def test_a_refusal_is_no_delivery(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    host.tell("tell hang hang-llm x")
    hook.status, hook.answer = 403, b"invalid_token"
    status, output = host.send()
    assert (status, host.waiting) == (1, 1)
    assert "403" in output


def test_over_the_limit_the_others_wait_and_go_as_one_sum(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook, per_hour=3)
    host.tell(*(f"tell restart restart-llm {number}" for number in range(8)))
    host.send()
    assert [body["kind"] for body in hook.bodies] == ["restart", "restart", "sum"]
    assert "restart-llm 6 times" in hook.bodies[-1]["text"]
    host.tell("tell restart restart-llm later")
    host.send()
    assert (len(hook.requests), host.waiting) == (3, 1)
    (tmp_path / "run/hour").write_text("")  # an hour later
    host.send()
    assert hook.bodies[-1]["text"].startswith("later")


def values(kind: str, state: str, text: str) -> dict[str, str]:
    return {
        "kind": kind,
        "key": f"{kind}-llm",
        "state": state,
        "severity": "critical",
        "host": "h1",
        "hosts": "h1",
        "title": f"{kind}-llm on h1",
        "text": text,
    }


ODD = 'a "quoted" \\ back & <http://x|y> réd'


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_host_fills_a_template_as_this_machine_does(form: MessageFormat, tmp_path: Path, hook: Receiver) -> None:
    template = Template(FORMATS[form].text.replace("<time>", "").replace("<until>", ""), *FORMATS[form][1:])
    out = tmp_path / "out"
    plain = FORMATS[form].escape == "none"
    notify: dict[str, Any] = {"format": form}
    notify |= {"command": ["/bin/sh", "-c", f"cat >{out}"]} if plain else {"url": Secret(hook.url)}
    if form == "alertmanager":
        notify["url"] = Secret(hook.url.replace("/hooks/abc", "/api/v2/alerts"))
    host = Sender(tmp_path, notify)
    (tmp_path / "etc/notify.peers").write_text("llm h1 127.0.0.1 8010\n")
    sender = tmp_path / "etc/notify"
    sender.write_text(sender.read_text().replace("<time>", "").replace("<until>", ""))
    host.tell(f"tell hang hang-llm '{ODD}'")
    assert host.send() == (0, "")
    sent = out.read_text() if plain else hook.requests[0][2].decode()
    assert sent == filled(template, values("hang", "firing", ODD))


def test_slack_is_sent_its_own_escapes(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook, format="slack")
    host.tell("tell hang hang-llm '<!channel> a & b'")
    host.send()
    (body,) = hook.bodies
    assert set(body) == {"text"}
    assert body["text"].endswith("\n&lt;!channel&gt; a &amp; b")


def test_a_template_of_the_site_is_filled(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook, template='{"a": ["<title>", "<text>"], "b": "<@U123>"}')
    host.tell("tell sick sick-llm 'three restarts'")
    host.send()
    assert hook.bodies[0]["a"][1] == "three restarts"
    assert hook.bodies[0]["b"] == "<@U123>"


def test_a_command_gets_the_message_and_a_failure_of_it_is_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        f'#!/bin/sh\ncat >>{tmp_path}/got\necho "$RACKWRIGHT_KEY" >>{tmp_path}/got\nexit $(cat {tmp_path}/ends)\n'
    )
    program.chmod(0o755)
    (tmp_path / "ends").write_text("3")
    host = Sender(tmp_path, {"command": [str(program), "two words"], "format": "mail"})
    host.tell("tell sick sick-llm x")
    assert host.send()[0] == 1
    assert host.waiting == 1
    (tmp_path / "ends").write_text("0")
    (tmp_path / "run/retry").unlink()
    assert host.send()[0] == 0
    got = (tmp_path / "got").read_text()
    assert got.startswith("Subject: [rackwright] sick-llm on ")
    assert got.endswith("sick-llm\n")
    assert host.waiting == 0


def test_a_test_message_goes_at_once_and_prints_the_answer(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    assert host.send("test") == (0, "HTTP 200: ok\n")
    assert keys(hook) == [("test", "firing")]
    hook.status, hook.answer = 404, b"no_service"
    assert host.send("test") == (1, "HTTP 404: no_service\n")


def peers(root: Path, index: int, answers: dict[str, str]) -> None:
    """Write this host and two peers in inventory order, and a bash that answers for the peers."""
    rows = [f"llm {name} 198.51.100.{number} {number}\n" for number, name in enumerate(answers, 1)]
    rows.insert(index, f"llm h{index} 127.0.0.1 8010\n")
    (root / "etc/notify.peers").write_text("".join(rows))
    (root / "bin").mkdir(exist_ok=True)
    cases = "".join(f"{number}) echo '{answer}' ;;\n" for number, answer in enumerate(answers.values(), 1))
    (root / "bin/bash").write_text(f"#!/bin/sh\ncase $4 in\n{cases}esac\n")
    (root / "bin/bash").chmod(0o755)
    text = (root / "etc/notify").read_text()
    (root / "etc/notify").write_text(text.replace("\nPATH=", f"\nPATH={root}/bin:", 1))


def test_the_first_of_a_fleet_sends_for_all_and_names_the_hosts(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 0, {"h1": "pending 75", "h2": "none"})
    host.tell("tell hang hang-llm x")
    host.send()
    assert (hook.requests, host.waiting) == ([], 1)  # within its first minute
    assert (tmp_path / "run/sent/hang-llm").read_text().startswith("pending ")
    host.older(70)
    host.send()
    assert [body["hosts"] for body in hook.bodies] == ["h0, h1"]
    assert (tmp_path / "run/sent/hang-llm").read_text().startswith("sent ")


def test_a_later_one_of_a_fleet_waits_for_the_first_and_sends_when_it_does_not(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 2, {"h0": "pending 75", "h1": "none"})
    host.tell("tell hang hang-llm x")
    host.older(80)
    host.send()
    assert (hook.requests, host.waiting) == ([], 1)
    peers(tmp_path, 2, {"h0": "pending 310", "h1": "none"})
    host.older(310)
    host.send()
    assert [body["hosts"] for body in hook.bodies] == ["h0, h2"]


def test_a_later_one_of_a_fleet_is_silent_once_the_first_has_sent(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 2, {"h0": "sent 95", "h1": "none"})
    host.tell("tell hang hang-llm x")
    host.older(80)
    host.send()
    assert (hook.requests, host.waiting) == ([], 0)
    host.tell("tell_resolved hang hang-llm x")
    host.send()
    assert (hook.requests, host.waiting) == ([], 0)


def test_where_peers_do_not_answer_each_sends_its_own(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 2, {"h0": "", "h1": ""})
    host.tell("tell hang hang-llm x")
    host.older(80)
    host.send()
    assert [body["hosts"] for body in hook.bodies] == ["h2"]


@pytest.mark.parametrize("odd", ["sent 08x", "pending 5 x", f"sent {'9' * 30}", "pending 1=2"])
def test_an_answer_of_a_peer_that_is_no_age_is_none(odd: str, tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 2, {"h0": odd, "h1": "pending 080"})
    host.tell("tell hang hang-llm x")
    host.older(310)
    assert host.send() == (0, "")
    assert [body["hosts"].split(", ")[-1] for body in hook.bodies] == ["h2"]


def test_an_event_of_another_hour_is_another_event(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 2, {"h0": "sent 4000", "h1": "none"})
    host.tell("tell hang hang-llm x")
    host.older(80)
    host.send()
    assert [body["hosts"] for body in hook.bodies] == ["h2"]


def test_the_end_of_a_fleets_event_waits_for_the_last_host(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    peers(tmp_path, 0, {"h1": "pending 75", "h2": "none"})
    host.tell("tell hang hang-llm x")
    host.older(70)
    host.send()
    peers(tmp_path, 0, {"h1": "sent 75", "h2": "none"})
    host.tell("tell_resolved hang hang-llm x")
    host.send()
    assert len(hook.requests) == 1
    peers(tmp_path, 0, {"h1": "none", "h2": "none"})
    host.send()
    assert (hook.bodies[-1]["state"], hook.bodies[-1]["hosts"]) == ("resolved", "h0, h1")


def test_neither_address_nor_header_is_in_an_argument(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook, header=Secret("Authorization: Bearer s3cr3t-s3cr3t"))
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    real = shutil.which("curl")
    (bin_ / "curl").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\nexec {real} "$@"\n')
    (bin_ / "curl").chmod(0o755)
    text = (tmp_path / "etc/notify").read_text()
    (tmp_path / "etc/notify").write_text(text.replace("\nPATH=", f"\nPATH={bin_}:", 1))
    host.tell("tell hang hang-llm x")
    host.send()
    assert len(hook.requests) == 1
    words = (tmp_path / "words").read_text()
    assert "s3cr3t" not in words
    assert "hooks/abc" not in words


def test_json_of_a_sum_of_alerts_is_a_list(tmp_path: Path, hook: Receiver) -> None:
    hook.url = hook.url.replace("/hooks/abc", "/api/v2/alerts")
    host = posting(tmp_path, hook, format="alertmanager", per_hour=1)
    host.tell("tell restart restart-llm a", "tell gpu gpu-0 b")
    host.send()
    (alerts,) = hook.bodies
    assert [alert["labels"]["key"] for alert in alerts] == ["restart-llm", "gpu-0"]
    assert json.loads(filled(FORMATS["alertmanager"], {}))[0]["labels"].keys() == alerts[0]["labels"].keys()


def test_a_repair_that_fails_at_each_look_is_one_message(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    again = "tell firewall-repair firewall-repair 'could not be put back'"
    host.tell(again, again)
    host.send()
    host.tell(again, "tell firewall-repair firewall-repair 'put back'")
    host.send()
    assert [body["text"] for body in hook.bodies] == ["could not be put back", "put back"]


def test_events_that_the_disk_had_no_room_for_are_sent_from_memory_in_their_order(
    tmp_path: Path, hook: Receiver
) -> None:
    host = posting(tmp_path, hook)
    full = tmp_path / "state/events"
    full.parent.mkdir()
    full.write_text("no folder")
    host.tell("tell hang hang-llm x")
    full.unlink()
    host.tell("tell restart restart-llm y")
    assert host.send() == (0, "")
    assert keys(hook) == [("hang-llm", "firing"), ("restart-llm", "firing")]
    host.tell("tell_resolved hang hang-llm z")
    assert host.send() == (0, "")
    assert keys(hook)[2:] == [("hang-llm", "resolved")]
    assert not list((tmp_path / "memory/events").iterdir())


def test_a_full_disk_keeps_no_message(tmp_path: Path, hook: Receiver) -> None:
    host = posting(tmp_path, hook)
    (tmp_path / "state").write_text("no folder")
    host.tell("tell hang hang-llm x")
    host.send()
    host.tell("tell_resolved hang hang-llm y")
    host.send()
    assert keys(hook) == [("hang-llm", "firing"), ("hang-llm", "resolved")]
