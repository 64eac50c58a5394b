"""The cheap lookups give pyinfra the same answers as its own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from pyinfra.api import arguments, util
from pyinfra.connectors import base
from pyinfra.connectors.ssh import ConnectorData

from rackwright.pyinfra_glue.cheap_lookups import calling_frames, place_of, use_cheap_lookups

INSPECT: dict[str, Any] = {"stack": inspect.stack, "getframeinfo": inspect.getframeinfo}


@pytest.fixture
def cheap() -> Iterator[None]:
    before = {name: vars(util)[name] for name in INSPECT}
    use_cheap_lookups()
    yield
    vars(util).update(before)


def asked(depth: int) -> tuple[list[int], str]:
    """An operation's order, and its call's location, asked some calls further in, as deploys nest."""
    if depth:
        return asked(depth - 1)
    state: Any = SimpleNamespace(current_deploy_filename=__file__, current_op_file_number=3)
    return util.get_operation_order_from_stack(state), util.get_call_location()


@pytest.mark.parametrize("depth", [0, 1, 7])
def test_the_order_of_operations_is_the_same(cheap: None, depth: int) -> None:
    answers = []
    for lookups in ({"stack": calling_frames, "getframeinfo": place_of}, INSPECT):
        vars(util).update(lookups)
        answers.append(asked(depth))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > depth
    assert __file__.rpartition("/")[2] in answers[0][1]


def test_pyinfra_goes_by_it(cheap: None) -> None:
    assert vars(util)["stack"] is calling_frames
    assert vars(util)["getframeinfo"] is place_of


def test_a_frame_is_looked_up_where_it_stands_now() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    found, expected = place_of(frame), inspect.getframeinfo(frame)
    assert found == (expected.filename, expected.lineno)


def test_types_of_arguments_are_the_same_and_looked_up_once(cheap: None) -> None:
    assert dict(arguments.all_global_arguments()) == get_type_hints(arguments.AllArguments)
    hints = vars(arguments)["get_type_hints"]
    assert hints is vars(base)["get_type_hints"]
    assert hints(ConnectorData) is hints(ConnectorData)
