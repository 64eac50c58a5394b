"""The image decides: a release's options are built inside its own image before anything is switched.

The answer is stored beside the releases, by request: accepted or unchecked options are not checked again, and
refused ones are refused again without running. A proven release needs no check (DECISIONS 27).
"""

from rackwright.concerns.options.concern import (
    LIMIT,
    OPTIONS,
    ImageVerdict,
    OptionRefusal,
    WantedOptions,
    _wanted,
    ask_script,
    changes,
    docker_run,
    marker,
    parse,
    report,
    schema_script,
    walk_script,
    wanted,
)

__all__ = [
    "LIMIT",
    "OPTIONS",
    "ImageVerdict",
    "OptionRefusal",
    "WantedOptions",
    "_wanted",
    "ask_script",
    "changes",
    "docker_run",
    "marker",
    "parse",
    "report",
    "schema_script",
    "walk_script",
    "wanted",
]
