"""Writes docs/reference/container-rights.md from the engines' data: what containers may do, and how keys are taken.

Run it with `python scripts/rights.py`; tests/unit/test_rights.py compares the page with what it would write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rackwright.engines.tables import table
from rackwright_engines.data import PRODUCTS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "container-rights.md"
HEAD = """\
# Container rights and keys

Made by `python scripts/rights.py` from `rights.yaml` and `api_key.yaml` of `rackwright/data/`; do not edit it.

An endpoint's container has no more rights than its way of serving is known to need. `container` in the
[settings](settings.md#container) says what differs: `capabilities: none`, `add_capabilities`, `pids_limit`, `shm_size`,
`user`, `read_only`. The proof shows the most threads that the container has had against its limit; preflight has a row
where the settings take away what a backend needs.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(PAGE)


def page() -> str:
    """Return the whole page."""
    heads = ("engine", "from", "where", "with", "needs", "why", "source")
    keys = ("engine", "from", "without the key it refuses", "its own log", "source")
    return "\n".join(
        [
            HEAD,
            f"## What every container has\n\n{_usual()}",
            _table("What a way of serving needs in addition", heads, map(_need, table("rights")["needs"])),
            _table("How an engine takes its clients' key", keys, _keys()),
        ]
    )


def _usual() -> str:
    usual = table("rights")["default"]
    dropped = ", ".join(usual["drop"])
    return (
        f"Docker's own capabilities less {dropped}; `no-new-privileges`; at most {usual['pids_limit']} processes and\n"
        f"threads; the host's /dev/shm (`--ipc=host`) unless `shm_size` is set. Why: {usual['why']}.\n"
        f"Source: [{_short(usual['source'])}]({usual['source']}).\n"
    )


def _need(row: Mapping[str, Any]) -> tuple[str, ...]:
    options = [f"`{key}: {' or '.join(map(_yaml, values))}`" for key, values in row.get("options", {}).items()]
    where = ", ".join(filter(None, (row["topology"], row.get("architecture"))))
    since = "" if row["since"] == "0" else str(row["since"])
    given = ", ".join(f"`{name}`" for name in row["capabilities"])
    source = f"[{_short(row['source'])}]({row['source']})"
    return PRODUCTS.get(row["engine"], "any"), since, where, ", ".join(options), given, row["why"], source


def _keys() -> Iterator[tuple[str, ...]]:
    for engine, row in table("api_key").items():
        if "none" in row:
            yield PRODUCTS[engine], "never", f"nothing: {row['none']}", "", row["source"]
            continue
        until = f" before {row['until']}" if "until" in row else ""
        log = f"writes it at the start{until}; Rackwright sets {row['logging']} so that it does not"
        yield PRODUCTS[engine], row["since"], row["guards"], log, " ".join(row["source"].split())


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(address: str) -> str:
    """Return a link's text: repository and number of a thread, or the host of a page."""
    parts = address.removeprefix("https://").split("/")
    return f"{parts[1]}/{parts[2]}#{parts[4]}" if parts[0] == "github.com" and len(parts) > 4 else parts[0]


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return f"## {title}\n\n" + "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


if __name__ == "__main__":
    main()
