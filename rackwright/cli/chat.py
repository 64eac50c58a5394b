"""`rackwright chat INVENTORY -- QUESTION`: ask every endpoint a question over SSH and print what it answers."""

from __future__ import annotations

import argparse
import json
from typing import NamedTuple

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.cli.inventories import add_limit, add_shared, add_timeout
from rackwright.concerns.endpoint.container import local_url, served_name
from rackwright.concerns.endpoint.proof.asking import asking_script
from rackwright.concerns.endpoint.proof.proof_row import UNASKED, Answer, http, parse_answer
from rackwright.exit_codes import done_if
from rackwright.messages import ASKED_FOR, paragraph, waiting
from rackwright.plan.change import Shell
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.settings.host_settings import EndpointSettings

GRACE = 10
"""Seconds that the host's command has beside the request's own limit."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("chat", help="ask every endpoint a question and print what it answers")
    add_limit(parser)
    add_timeout(parser, "of an answer", 120)
    parser.add_argument("--max-tokens", type=int, default=512, metavar="N", help="longest answer")
    add_shared(parser, "json")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask, print; 1 when an endpoint did not answer."""
    entries = chosen_hosts(arguments.inventory, arguments.limit, arguments.only)
    answers: list[dict[str, str | bool]] = []
    with connected(entries) as hosts:
        for one in hosts:
            group = one.entry.settings.group
            if group is not None and one.entry.settings.follows:
                _tell(one.host.name, group.endpoint, f"{group.head.host} answers for it", arguments.json)
                continue
            for name, endpoint in one.entry.settings.all_endpoints.items():
                question = ChatQuestion(" ".join(arguments.question), arguments.max_tokens, arguments.timeout)
                text, answered = ask(one, name, endpoint, question)
                answers.append({"host": one.host.name, "endpoint": name, "answered": answered, "text": text})
                _tell(one.host.name, name, text, arguments.json)
    if arguments.json:
        print(json.dumps([{**row, "text": paragraph(str(row["text"]), ASKED_FOR)} for row in answers], indent=1))
    return done_if(all(row["answered"] for row in answers) and len(hosts) == len(entries))


def _tell(host: str, endpoint: str, text: str, as_json: bool) -> None:
    if not as_json:
        print(f"{host} {endpoint}: {paragraph(text, ASKED_FOR)}")


class ChatQuestion(NamedTuple):
    """A question to an endpoint: its text, the most tokens of the answer, and its time limit in seconds."""

    text: str
    max_tokens: int
    seconds: int


def ask(one: Connected, name: str, endpoint: EndpointSettings, question: ChatQuestion) -> tuple[str, bool]:
    """Return the endpoint's answer as text, and whether it is one."""
    body = {
        "model": served_name(endpoint),
        "messages": [{"role": "user", "content": question.text}],
        "max_tokens": question.max_tokens,
    }
    script = asking_script(name) + http(f"{local_url(endpoint)}/v1/chat/completions", question.seconds, post=True)
    with waiting(lambda: f"{name} on {one.host.name} to answer"):
        limit = question.seconds + GRACE
        try:
            ok, output = remote(one.host, command_of(Shell(script, stdin=json.dumps(body), timeout=limit)))
        except StepFailedError as error:
            return str(error), False  # the other hosts are asked anyway
    if not ok or not output.stdout_lines:
        return "could not be asked", False
    try:
        answer = parse_answer(output.stdout_lines)
        return _content(answer), answer.status == 200
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return f"answered something unreadable ({error!r}): {output.stdout_lines[0][:300]}", False


def _content(answer: Answer) -> str:
    if answer.status == 0 and (unasked := UNASKED.fullmatch(answer.body)):
        return f"is not asked: {unasked[2]}"
    if answer.status == 0:
        return "does not answer; next, on the host: journalctl -u 'rackwright-*' --lines 50"
    if answer.status != 200:
        return f"answers {answer.status}: {answer.body[:300]}"
    message = answer.json()["choices"][0]["message"]["content"]
    return f"{message} ({answer.seconds:.1f} s)"
