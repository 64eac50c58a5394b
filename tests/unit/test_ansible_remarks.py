"""What Ansible's commands warn of, in the words of 2.17 to 2.19: one line each, without what says nothing of hosts."""

from __future__ import annotations

from rackwright.loading.ansible.remarks import SHOWN, remarks

NEW = """\
[WARNING]: Failed to parse inventory with 'auto' plugin: no module

Failed to parse inventory with 'auto' plugin.

<<< caused by >>>

no module
Origin: <inventory plugin 'auto'>

[DEPRECATION WARNING]: something goes. This feature will be removed
in a later version.
[WARNING]: Found both group and host with same name: a
[WARNING]: Found both group and host with same name: a
[ERROR]: Completely failed to parse inventory source /x
"""
OLD = """\
[WARNING]:  * Failed to parse /x/netbox.yml with auto plugin: inventory config
'/x/netbox.yml' specifies unknown plugin 'netbox.netbox.nb_inventory'
[WARNING]: Invalid characters were found in group names but not replaced, use
-vvvv to see details
[WARNING]: Unable to parse /x/netbox.yml as an inventory source
"""


def test_the_text_of_each_warning_is_one_line() -> None:
    assert remarks(NEW) == [
        "Failed to parse inventory with 'auto' plugin: no module",
        "Found both group and host with same name: a",
        "Completely failed to parse inventory source /x",
    ]
    assert remarks(OLD) == [
        "* Failed to parse /x/netbox.yml with auto plugin: inventory config '/x/netbox.yml' specifies unknown plugin "
        "'netbox.netbox.nb_inventory'",
        "Unable to parse /x/netbox.yml as an inventory source",
    ]
    assert remarks("") == []


def test_a_flood_of_warnings_is_counted_text() -> None:
    found = remarks("".join(f"[WARNING]: rack {number} is away\n" for number in range(100)))
    assert len(found) == SHOWN + 1
    assert found[-1] == "and 90 more warnings of Ansible's"
