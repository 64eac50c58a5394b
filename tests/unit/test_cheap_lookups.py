"""The cheap lookups give pyinfra the same answers as its own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyinfra.api import Config, Inventory, State, arguments, util
from pyinfra.api.exceptions import ArgumentTypeError
from pyinfra.connectors import base
from pyinfra.connectors.ssh import ConnectorData

from rackwright.adapter.cheap_lookups import calling_frames, global_arguments, place_of, use_cheap_lookups

INSPECT: dict[str, Any] = {"stack": inspect.stack, "getframeinfo": inspect.getframeinfo}
OWN_POP = arguments.pop_global_arguments
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "_sudo": st.booleans(),
    "_sudo_user": st.sampled_from(["root", "llm", 7]),
    "_env": st.dictionaries(st.sampled_from("AB"), st.sampled_from("xy")),
    "_timeout": st.integers(1, 3),
    "_if": st.just(lambda: True),
    "name": st.text(max_size=2),
    "another": st.integers(),
}
LAYER = st.fixed_dictionaries({}, optional=VALUES)


@pytest.fixture
def cheap() -> Iterator[None]:
    before = {name: vars(util)[name] for name in INSPECT}
    use_cheap_lookups()
    yield
    vars(util).update(before)


def order_and_location(depth: int) -> tuple[list[int], str]:
    """Look up an operation's order and its call's location, some calls further in, as deploys nest."""
    if depth:
        return order_and_location(depth - 1)
    state: Any = SimpleNamespace(current_deploy_filename=__file__, current_op_file_number=3)
    return util.get_operation_order_from_stack(state), util.get_call_location()


@pytest.mark.parametrize("depth", [0, 1, 7])
def test_the_order_of_operations_is_the_same(cheap: None, depth: int) -> None:
    answers = []
    for lookups in ({"stack": calling_frames, "getframeinfo": place_of}, INSPECT):
        vars(util).update(lookups)
        answers.append(order_and_location(depth))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > depth
    assert __file__.rpartition("/")[2] in answers[0][1]


def test_pyinfra_goes_by_it(cheap: None) -> None:
    assert vars(util)["stack"] is calling_frames
    assert vars(util)["getframeinfo"] is place_of
    askers = [module for name, module in sys.modules.items() if name.startswith("pyinfra.api.")]
    found = {vars(module).get("pop_global_arguments", global_arguments) for module in askers}
    assert found == {global_arguments}


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


@given(layers=st.lists(LAYER, min_size=8, max_size=8), sudo=st.booleans())
def test_arguments_come_from_the_same_layer_with_the_same_checks(layers: list[dict[str, Any]], sudo: bool) -> None:
    assigned, override, host_data, group_data, all_data, deploy_data, of_deploy, kwargs = layers
    groups = {"racks": (["rw1"], group_data)}
    inventory = Inventory(([("rw1", host_data)], all_data), override_data=override, **groups)
    host = inventory.get_host("rw1")
    state = State(inventory, Config(SUDO=sudo, ENV={"B": "z"}))
    host.current_deploy_data, host.current_deploy_kwargs = deploy_data, cast(Any, of_deploy or None)
    for key, value in assigned.items():
        setattr(host.data, key, value)

    def popped(pop: Any) -> Any:
        arguments = dict(kwargs)
        try:
            return pop(state, host, arguments), arguments
        except ArgumentTypeError as error:
            return str(error)

    assert popped(global_arguments) == popped(OWN_POP)
