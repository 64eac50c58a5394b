"""Endpoints: the unit runs the wanted release, it answers, and it has been proven."""

from rackwright.concerns.endpoint.concern import (
    ENDPOINT,
    adopted_later,
    changes,
    deferred_releases,
    foreign_units,
    takes_capacity,
    waits,
)
from rackwright.concerns.endpoint.edits import command_edits, exec_words, foreign_drop_ins, hand_edits, is_named
from rackwright.concerns.endpoint.formats import WAY_OUT, foreign, format_of, readable, refusal
from rackwright.concerns.endpoint.questions import is_keyed, of_container, questions, tried_of
from rackwright.concerns.endpoint.seen import (
    BOOT_UNITS,
    Running,
    SeenEndpoint,
    SeenEndpoints,
    as_meant,
    binding_in,
    last_switch,
    parse,
    running_of,
)
from rackwright.concerns.endpoint.switch.replacement_change import leaving_part
from rackwright.concerns.endpoint.wanted import WantedEndpoint, WantedEndpoints
from rackwright.concerns.endpoint.why_switch import (
    Aim,
    edited_by_hand,
    is_deferred,
    serves_the_same,
    why_switch,
)

__all__ = [
    "BOOT_UNITS",
    "ENDPOINT",
    "WAY_OUT",
    "Aim",
    "Running",
    "SeenEndpoint",
    "SeenEndpoints",
    "WantedEndpoint",
    "WantedEndpoints",
    "adopted_later",
    "as_meant",
    "binding_in",
    "changes",
    "command_edits",
    "deferred_releases",
    "edited_by_hand",
    "exec_words",
    "foreign",
    "foreign_drop_ins",
    "foreign_units",
    "format_of",
    "hand_edits",
    "is_deferred",
    "is_keyed",
    "is_named",
    "last_switch",
    "leaving_part",
    "of_container",
    "parse",
    "questions",
    "readable",
    "refusal",
    "running_of",
    "serves_the_same",
    "takes_capacity",
    "tried_of",
    "waits",
    "why_switch",
]
