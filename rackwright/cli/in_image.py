"""`rackwright check INVENTORY --in-image`: each image's own word on the options, on hosts that have it; no deploy."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.concerns.endpoint.release.concern import Unresolved, wanted_releases
from rackwright.concerns.options import LIMIT, WantedOptions, ask_script
from rackwright.concerns.options import wanted as wanted_options
from rackwright.concerns.read_host import read_host
from rackwright.engines.host import NOT_ASKED
from rackwright.exit_codes import done_if
from rackwright.inspect.read_hosts import in_parallel
from rackwright.loading.files import site_root
from rackwright.messages import ReadingError, paragraph
from rackwright.paths import RUN
from rackwright.plan.change import Shell
from rackwright.plan.concern import HostReading
from rackwright.remote.commands import command_of as command
from rackwright.remote.commands import remote
from rackwright.remote.errors import StepFailedError
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Locks

Answer = tuple[bool, list[str]]
"""True where nothing was refused, and lines to print."""


def check_in_image(inventory: str, limit: Sequence[str]) -> int:
    """Ask the images on every chosen host and print what they say; 1 when one refuses or a host is not known.

    Raises RackwrightError for a wrong inventory, and when no host can be reached.
    """
    entries = chosen_hosts(inventory, limit)
    locks = Locks(site_root(Path(inventory).expanduser()))
    with connected(entries) as hosts:
        answers = in_parallel(hosts, lambda one: _host(one, locks.pin(one.entry.settings)))
    for entry in entries:
        _, lines = answers.get(entry.name, (False, ["cannot be reached"]))
        print(paragraph("\n".join(f"{entry.name}: {text}" for text in lines)))
    return done_if(all(answers.get(entry.name, (False,))[0] for entry in entries))


def _host(one: Connected, settings: HostSettings) -> Answer:
    try:
        reading, _ = read_host(one.host, settings)
        answers = [(True, [missing]) for missing in unresolved(settings, reading)]
        answers += [_ask(one, options) for options in wanted_options(settings, reading)]
    except (ReadingError, StepFailedError) as error:
        return False, [str(error)]
    return all(well for well, _ in answers), [text for _, lines in answers for text in lines]


def unresolved(settings: HostSettings, reading: HostReading) -> Iterator[str]:
    """Yield a line for each endpoint whose image or models are not on the host yet."""
    for name, release in wanted_releases(settings, reading).items():
        if isinstance(release, Unresolved):
            yield f"{name}: not checked inside the image: unknown on this host: {', '.join(release.missing)}"


def _ask(one: Connected, options: WantedOptions) -> Answer:
    spec = options.release.spec
    if options.crowded:
        return True, [f"{spec.name}: {NOT_ASKED}"]
    ok, output = remote(one.host, command(Shell(script_of(options), timeout=LIMIT + 60)))
    printed = [text for text in (*output.stdout_lines, *output.stderr_lines) if text]
    return ok, [f"{spec.name}: {text}" for text in printed or [f"{spec.image} accepts {spec.engine_file}"]]


def script_of(options: WantedOptions) -> str:
    """Ask about a release that need not be on the host: its YAML is in a temporary folder until the answer."""
    spec = options.release.spec
    folder = shlex.quote(f"{RUN}/in-image/{spec.name}")
    text = base64.b64encode(spec.engine_yaml.encode()).decode()
    ask = ask_script(
        options, f"{RUN}/in-image/{spec.name}/release", f"{RUN}/in-image/{spec.name}/answer/{options.release.hash}"
    )
    return f"""\
mkdir -p {folder}/release
echo {text} | base64 -d >{folder}/release/{shlex.quote(spec.engine_file)}
({ask})
status=$?
rm -rf {folder}
exit $status"""
