"""The image has the last word: a release's options are built inside its own image before anything is switched.

The answer is kept beside the releases, by what was asked: what was accepted or not checked is not asked again, and
what was refused is refused again without running. What has been proven needs no asking (DECISIONS 27).
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
