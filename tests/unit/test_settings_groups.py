"""Order of groups: by depth, then priority, then name; and loops are refused."""

from __future__ import annotations

from rackwright.messages import SettingsError
from rackwright.settings.inventory_groups import InventoryGroup, InventoryGroups
from tests.refused import refused


def test_a_child_is_stronger_than_its_parents_however_they_are_named() -> None:
    groups = InventoryGroups([InventoryGroup("zeta", [], ["alpha"]), InventoryGroup("alpha", ["h"])])
    assert groups.of("h") == ["zeta", "alpha"]


def test_depth_counts_the_longest_way() -> None:
    groups = InventoryGroups(
        [
            InventoryGroup("a", [], ["b", "c"]),
            InventoryGroup("b", [], ["c"]),
            InventoryGroup("c", ["h"]),
            InventoryGroup("d", ["h"]),
        ]
    )
    assert groups.of("h") == ["a", "d", "b", "c"]


def test_priority_decides_within_a_depth_only() -> None:
    groups = InventoryGroups(
        [
            InventoryGroup("a", ["h"], values={"ansible_group_priority": 10}),
            InventoryGroup("b", ["h"]),
            InventoryGroup("top", [], ["b"]),
        ]
    )
    assert groups.of("h") == ["top", "a", "b"]
    flat = InventoryGroups(
        [InventoryGroup("a", ["h"], values={"ansible_group_priority": "10"}), InventoryGroup("b", ["h"])]
    )
    assert flat.of("h") == ["b", "a"]


def test_all_is_below_everything_and_not_named() -> None:
    groups = InventoryGroups([InventoryGroup("all", ["loose"], ["a"]), InventoryGroup("a", ["h"])])
    assert groups.of("h") == ["a"]
    assert groups.of("loose") == []
    assert groups.members("all") == ["loose", "h"]


def test_members_keep_the_inventory_order() -> None:
    groups = InventoryGroups(
        [InventoryGroup("b", ["h2", "h1"]), InventoryGroup("a", ["h3"]), InventoryGroup("both", [], ["a", "b"])]
    )
    assert groups.members("both") == ["h2", "h1", "h3"]


def test_groups_that_contain_each_other_are_refused() -> None:
    with refused("RW0102", "b > a > a", "`children`", error=SettingsError):
        InventoryGroups([InventoryGroup("a", [], ["b"]), InventoryGroup("b", [], ["a"])])


def test_a_priority_that_is_no_number_is_refused() -> None:
    with refused("RW0103", "group a", "ansible_group_priority", "'high'", error=SettingsError):
        InventoryGroups([InventoryGroup("a", ["h"], values={"ansible_group_priority": "high"})]).of("h")
