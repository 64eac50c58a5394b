"""Requests to an endpoint on its host: only to its own container, and with the key that its binding names. Pure.

Any local user may listen on a port that is free for a moment: before a key is sent, the listener is checked.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace

from rackwright.concerns.endpoint.proof.proof_row import Question, login_script
from rackwright.hostside import host_script
from rackwright.paths import endpoint_dir


def listener_script(endpoint: str) -> str:
    """Return functions of the shell that say whether the endpoint's own container has its port (listener.sh)."""
    return host_script("holders") + host_script("listener", listener_home=endpoint_dir(endpoint))


def known_script(endpoint: str) -> str:
    """Return shell lines behind which requests go to the endpoint's own container, or nowhere."""
    return listener_script(endpoint) + host_script("known_curl")


def port_holder_script(endpoint: str) -> str:
    """Return a shell function, for jobs, that prints which other process has the endpoint's port (port_holder.sh)."""
    packed = gzip.compress(known_script(endpoint).encode(), mtime=0)
    return host_script("port_holder", known=base64.b64encode(packed).decode())


def asking_script(endpoint: str) -> str:
    """Return shell lines that stand before requests with the key that the endpoint asks for now, if any."""
    return known_script(endpoint) + login_script(endpoint_dir(endpoint))


def confined(endpoint: str, question: Question, keyed: bool) -> Question:
    """Return a row whose requests, if it has any, go to the endpoint's own container alone.

    keyed: True where they carry the key that it asks for.
    """
    if "curl" not in question.script:
        return question
    login = login_script(endpoint_dir(endpoint)) if keyed else ""
    return replace(question, before=known_script(endpoint), script=login + question.script)
