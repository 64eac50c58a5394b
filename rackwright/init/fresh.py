"""The files of a fresh site: about ten, all the user's. Pure, but for the shipped files that it begins from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from rackwright.init.choices import Choices, SiteGroup, SiteHost
from rackwright.init.shipped import SCHEMA_LINE, shipped
from rackwright.profiles.catalog import Profile, topmost
from rackwright.settings.json_schema import json_text

SCHEMA = Path(".rackwright/settings.schema.json")
"""Its path for editors, which the first line of each YAML file names."""
COPIED = ("deploy.py", "config.py", "group_vars/all.yml", "tasks/__init__.py")
TEMPLATES = ("before-start.j2", "endpoint.service.j2", "wait-ready.j2")
"""Templates that a site gets; others are the library's until a site has one of its own."""
GITIGNORE = """\
__pycache__/
pyinfra-debug.log
/runs/
rackwright.lock.?*.yml
rackwright.presets.?*.yml
"""
NUMBERS = {2: "two", 3: "three", 4: "four"}
"""Hosts that serve together, in words: as many as a shipped profile has."""
WIDEST = 100
"""Characters of a comment's line."""
ANSIBLE = Path("inventory/ansible.py")


@dataclass(frozen=True)
class Fresh:
    """Files by path: those that `init --update` follows, and those that are the site's alone from the start."""

    shipped: Mapping[Path, bytes]
    made: Mapping[Path, bytes]
    profiles: tuple[str, ...] = ()

    @property
    def files(self) -> dict[Path, bytes]:
        """All of them."""
        return {**self.shipped, **self.made}


def followed_files() -> dict[Path, bytes]:
    """Return the files that every fresh site has, as this version ships them. Raises RackwrightError."""
    source = shipped()
    names = [*COPIED, *(f"templates/{name}" for name in TEMPLATES)]
    files = {Path(name): with_schema((source / name).read_bytes()) for name in names}
    return {**files, Path(".gitignore"): GITIGNORE.encode(), SCHEMA: json_text().encode()}


def with_schema(text: bytes) -> bytes:
    """Return a shipped text whose first line names a fresh site's schema."""
    return text.replace(SCHEMA_LINE.encode(), f"{SCHEMA_LINE.partition('=../')[0]}=../{SCHEMA}".encode(), 1)


def made_files(found: Choices) -> dict[Path, bytes]:
    """Return the inventories and the groups' files of a site."""
    inventories = {
        Path(f"inventory/{stem}.py"): inventory_text(stem, groups) for stem, groups in found.inventories.items()
    }
    groups = {Path(f"group_vars/{group.name}.yml"): group_text(group) for group in found.groups}
    return {path: text.encode() for path, text in {**inventories, **groups}.items()}


# -- the inventory


def inventory_text(stem: str, groups: Sequence[SiteGroup]) -> str:
    """Return the text of an inventory."""
    rows = [row for group in groups for row in _group_rows(stem, group, len(groups) > 1)]
    machine = groups[0].profile.machine
    return f'''"""{machine}: hosts by group. What a group serves: group_vars/GROUP.yml."""

from rackwright.inventory import build

globals().update(
    build(
        __file__,
        {{
{"".join(f"            {row}{chr(10)}" for row in rows)}        }},
    )
)
'''


def _group_rows(stem: str, group: SiteGroup, has_others: bool) -> Iterator[str]:
    yield f"{json.dumps(group.name)}: ["
    if group.hosts:
        yield from (f"    {row}" for row in _about_together(group.profile.hosts))
        yield from (f"    {row}" for host in group.hosts for row in _host_rows(host))
    elif not has_others:
        yield from (f"    {row}" for row in _examples(stem, group.profile.hosts))
    yield "],"


def _about_together(together: int) -> Iterator[str]:
    """Yield what to know of hosts that were read, where some of them serve together."""
    if together > 1:
        yield f"# Each {NUMBERS[together]} neighbours serve together, and the first one answers."
        yield '# fabric_address, where a cable connects them: ("10.0.0.7", {"fabric_address": "192.0.2.11"}).'


def _examples(stem: str, together: int) -> Iterator[str]:
    name = stem.replace("_", "-")
    yield "# Your hosts, in place of these: a name, or a name and how SSH reaches it."
    if together > 1:
        yield f"# Each {NUMBERS[together]} neighbours serve together; fabric_address: where they reach each other."
        ranks = range(1, together + 1)
        yield from (f'("{name}-0{n}.example.com", {{"fabric_address": "192.0.2.1{n}"}}),' for n in ranks)
        return
    yield f'"{name}-01.example.com",'
    yield f'("{name}-02.example.com", {{"ssh_hostname": "192.0.2.12", "ssh_user": "ops"}}),'


def _host_rows(site_host: SiteHost) -> Iterator[str]:
    machine = site_host.machine
    text = machine.brief if machine and machine.gpu else "not read yet" if machine else ""
    yield f"{host_entry(site_host)},{f'  # {text}' if text else ''}"


def host_entry(site_host: SiteHost) -> str:
    """Return a host as it is written in an inventory."""
    data = site_host.host.data
    name = json.dumps(site_host.host.name)
    return f"({name}, {json.dumps(data)})" if data else name


# -- a group's file


def group_text(group: SiteGroup) -> str:
    """Return the text of a group's file: its profile, and what is most often set beside it."""
    profile = group.profile
    return f"""\
# yaml-language-server: $schema=../{SCHEMA}
{_comment(f"{_serves(profile)}.")}
# All that it sets: rackwright profiles show {profile.name}
# Other profiles: rackwright profiles list
profile: {profile.name}

# What is set here is stronger than the profile:
# port: 8000
# gpus: [0]
# allow_from: [10.0.0.0/8]{_who_else(profile)}
# engine:
{_engine_example(profile)}"""


def _who_else(profile: Profile) -> str:
    """Return who is answered without `allow_from`, where the engine listens on the host's own network."""
    on_host = topmost(profile.files.values()).get("network") == "host"
    first = "the first host" if profile.hosts > 1 else "the host"
    return f" # without it, only {first} itself is answered" if on_host else ""


def _comment(text: str) -> str:
    return "\n".join(wrap(text, WIDEST, initial_indent="# ", subsequent_indent="# "))


def _serves(profile: Profile) -> str:
    drafting = f", drafting by {profile.drafting}" if profile.drafting else ""
    several = f" on {profile.hosts} hosts together" if profile.hosts > 1 else ""
    return f"{profile.model} with {profile.engine} {profile.version}{drafting}{several}"


EXAMPLES = {
    "TensorRT-LLM": "#   kv_cache_config: { free_gpu_memory_fraction: 0.8 }\n",
    "vLLM": "#   gpu-memory-utilization: 0.9\n",
    "SGLang": "#   mem-fraction-static: 0.85\n",
}
"""An option of each engine that is often set."""


def _engine_example(profile: Profile) -> str:
    return EXAMPLES[profile.engine]
