"""The stand-ins hold their address as the real servers do: what a stopped server's clients leave behind matters."""

from __future__ import annotations

import socket

import pytest

from rackwright_lab.standins.engine.serve.listen import bound


@pytest.fixture
def left_port() -> int:
    """Return a port whose server has just closed a client's connection and ended: the port waits for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()
            client.recv(1)
    return port


def test_trtllm_serve_does_not_get_an_address_that_was_just_left(left_port: int) -> None:
    with pytest.raises(RuntimeError, match="Address already in use"):
        bound("127.0.0.1", left_port)


@pytest.mark.parametrize("reuse", [(socket.SO_REUSEADDR, socket.SO_REUSEPORT), (socket.SO_REUSEADDR,)])
def test_vllm_and_sglang_get_it(left_port: int, reuse: tuple[int, ...]) -> None:
    with bound("127.0.0.1", left_port, *reuse) as made:
        assert made.getsockname()[1] == left_port


@pytest.mark.parametrize("reuse", [(), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)])
def test_nobody_gets_an_address_that_somebody_listens_on(reuse: tuple[int, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RuntimeError, match="Address already in use"):
        bound("127.0.0.1", taken.getsockname()[1], *reuse)
