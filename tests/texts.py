"""What Rackwright says without a code, and tests wait for: each text stands here alone.

`{name}` stands for what varies. tests/unit/test_texts.py finds each of them in the product: a text that was changed
there fails in seconds, and not on lab hosts after minutes.
"""

from __future__ import annotations

import re

# The switch.
REPLACES = "replace endpoint {old} by {new}"
AT_RELEASE = "endpoint {endpoint} at release {release}"
TOGETHER = "each takes GPUs or a port of the other"
ADOPTS = "its unit or its helper scripts differ, and --adopt asks for them"
ROLLED_BACK = "endpoint {endpoint} serves its last proven release again"
GIVEN_BACK = "endpoint {old} serves again, in whose place {new} was to"
STOPPED = "endpoint {endpoint} is stopped: there was no other proven release to roll back to"
NOT_SWITCHED = "not switched: {why}; the previous release serves"
FAILED_BEFORE = "{host} failed before it"
NOT_READY = "not ready within its load_timeout"
TAKEN = "port {port} is taken by {by}"
NO_WORD = "no word came within {seconds} s (gate.commit_deadline)"
ALONE = "the host finishes the switch on its own, or rolls back; the next run joins it, or reads how it ended"
NOT_LET_IN = "clients are not let in again: {why}"
LET_IN_LATE = "clients were not let in again after its last switch"
CLOCKS = "pointing back took {pointed} s, serving again after {serving} s"
STARTED_OTHERWISE = "it was started {edited}, not as its release says"
CLOSES_CACHES = "close the caches of endpoint {endpoint} to other users"
ASKS_AGAIN = "switch endpoint {endpoint} to release {release}"
GPUS_CHANGED = "its GPUs changed"
ENDED = "ended with status {status}"
ASK_IT = 'rackwright chat {inventory} -- "What is the capital of France?"'

# Diagnosis.
DIAGNOSES = "diagnose the GPUs at level {level} by dcgmi"

# The gate.
DRAFTING_SPOILS = "drafting ({method}) spoils all but greedy answers"
DRAFT_TOKENS = " of {proposed} draft tokens"
TEXT_COMES_BACK = "{share} of the text comes back"
QUESTIONS_PAUSED = "paused while other requests wait"

# Endpoints of several hosts.
NOT_ORTED = "it is not orted with plain options"
NAMES_FILES = "it names files of its own"

# Jobs, leases and downloads.
JOINED = "already under way on the host, joining it"
LEASE_TAKEN_AWAY = "the lease of this run was taken away by {by}, "
LEASE_HOLDER = "(process {pid} of this machine), which has ended"
LATE_JOB = "it took more than its time, and was ended after {seconds} s"
CONTINUED = "going on where an earlier run stopped: "
NOT_VERIFIED = "{folder} is read-only, and not verified by this host yet"
SOMEBODY_ELSES = "{folder} was not made by Rackwright: what is right in it is kept"
READ_ONLY = "{folder} is read-only for this host, and "
FILL_ELSEWHERE = "fill it from a host that may write there"
GATED = " is gated, and no models.hub_token is set"
NOT_PULLED = "could not be pulled from {registry} after {tries} tries"
KEY_REFUSED = "the key for {registry} is not taken"
WAITS_FOR_FETCH = "another process is fetching into {folder}"
LEAVES_MODEL = "leave the model {path}"
NOT_FROM_BUNDLE = "cannot be taken from the bundle"
TAKES_NAME = "take a registry's name out of /etc/hosts"
READ_ONLY_WHOLE = "{folder}: read-only, complete and verified, "
NO_BYTE = "no byte came for {seconds}"
PULL_WAITS = "another pull on this host leads a registry's name to a bundle: waiting for its end"
UNPACKING = "unpacking: "
WAITS = "handing on: waiting for {rows}, {seconds} s at most"
WAITS_TO_ASK, WAITS_TO_BEGIN = "{names} to ask for more", "{names} to begin"
NOT_PUBLISHED = "{count} files here are not the published ones: {names}"
THROWN_AWAY = "{path} is not the published file and was thrown away; from: {names}"
NOT_HANDED_ON = "no host of this run hands {repository} on whole: "
WRONG_BYTES = "{repository}: {files} arrived with wrong bytes, twice; it was not taken"
NOT_AS_LOCKED = " at {revision} is not what the lock file has: {files}"
LACKS = "{folder} is read-only for this host, and {target} lacks, or has with other bytes: "

# Docker.
CONFIGURES_DOCKERD = "configure dockerd and {action} it"
CHAINS_GONE = "Docker's chains are gone ({chains})"
RESTARTS_IDLE_DOCKERD = "restarting dockerd, which runs nothing"
DOCKERD_DOWN = "it is installed but does not answer"
PROGRAM_GONE = "{path}, by which Docker starts containers, is no longer on this host"
APT_LOCK = "waiting for {lock}, held by process "
APT_CUT = "an interrupted installation is being completed on this host"
WRONG_PIN = "the repository has no {version}; it has:"
WATCH_RESTARTED = "it ran nothing and was restarted; started:{units}"

# The firewall.
RULE_BEHIND = "a rule that closes stands behind ours: "
TWO_BACKENDS = "{command} has rules of its own beside {backend}: "
PUT_BACK_OFTEN = "this host has put its firewall rules back {times}, "
PUT_BACK_AGAIN = "for the {times}. time within an hour; "
AS_PUT = "the rules stand as they were put"
PAUSED = "nothing is put back for another {seconds} s"
UNREACHABLE_PORT = "warning: port {port} is not reachable from {by}"

# Plans, drift and teardown.
RESTARTS = "restarts {endpoint} because {why}"
BOOT_UNIT_OFF = "{unit} is not enabled"
NO_BOOT = "it no longer starts at boot"
DROP_IN = "{path} is not Rackwright's"
DROP_IN_SETS = "{path} is not Rackwright's and sets {keys}"
LEFT_BEHIND = "left behind: {kinds} of {step}(), which is no longer called"
NO_LONGER_CALLED = "its step is no longer called"
LEFT_BEHIND_GONE = "done: what steps that are no longer called had left is gone"
OPERATIONS_NOT_RUN = "the site's own operations are not run: "
REMOVES_MODEL = "remove the model {path} ("
STAYS_ON_SHARE = "is on a share, whose other hosts may need it, so it stays"
LEFT_ALONE = "in users' hub caches, which are left alone"
DONE_BUT_KEPT = "done: gone, but for what is left on purpose, see above"
NOT_ALL_GONE = "not everything is gone, or known to be gone, from "
NO_RECORD = "{path} is gone, and it alone names which packages, holds, "
NOTHING_FOUND = "nothing of Rackwright was found: "
MOVED_AWAY_TO = "move {unit} away to "

# Options of engines.
REFUSED_WORDS = "the server's command line refuses it: "
UNKNOWN_OPTION = "{engine} does not know this key"
NEEDS_GPUS = " needs {needs} GPUs{each}, and endpoint {endpoint} has {gpus}; "
FEWER_GPUS = "for {gpus} set it to {size}"
EXPORTED = "{count} options of {engine} {version}{source} in {path}"
NOT_CHECKED = "not checked inside the image: unknown on this host: "

# Rollouts and the hosts that they leave out.
QUARANTINED = "{host} is quarantined ({why})"
WELL_AGAIN = "{host} is well again, and no longer quarantined"
DRAINED = "its endpoints are left as they are"
RUN_CUT = "was cut; next: rackwright resume "
NOTHING_TO_RESUME = "found its release at fault and rolled it back, so nothing is left to resume"
NOTHING_BEGUN = "nothing was begun on any host"
INCLUDED = "{host} is {mark}; this run includes it anyway"
SKIPPED = "{host} is skipped: {why}"
THROUGH = "{over} of {hosts} hosts are through"

# Inventories and settings.
FIX_THESE = "fix these, then: "
VALID = "the settings are valid"
IGNORED = "ignored as another program's"
NO_MODEL = "skipped, since nothing gives them a model: "
KEY_IS_MAPPING = "Rackwright's {key} is a mapping of `key: value` lines"
UNKNOWN_KEYS = "the host keys of {hosts} are not in known_hosts, so SSH will refuse them"
LOGS_IN = "the login at {hosts}"
SILENT_SERVER = "{who} took the connection and did not answer within {seconds} s"

# The bench.
FETCHED = "{sets}: ready to be measured with"
WINS = "wins {where} by {ratio}x ("
ACCEPTANCE = "{rate} tokens a step; {share}; {positions}"
NO_FIGURES = "{failed} of {asked} failed, so it has no figures"
NOTHING_KEPT = "no preset is kept: no cell proves a variant"
AT_A_RATE = "{rate} request{s} a second, at most {concurrency} at once"
RATE_ALONE = "proven for requests at that rate alone"
NOT_RANKED = "not ranked: "
OF_ANOTHER_MODEL = "of another model"
FOR_ANOTHER_COUNT = "for another number of GPUs"
WITH_DOUBTFUL_FIGURES = "with doubtful figures"
KNOWN_NOT_TO_RUN = "known not to run"
SPEED_NOT_MEASURED = "whose speed was not measured"
ALL_OF_THEM = "; all of them: {command} --all"
DOES_NOT_RUN = "does not run"
KEPT_PRESET = "kept as preset {name} in"
TUNE_TIME_OVER = "its time ({seconds} s)"
AS_BEFORE_TUNE = "serves release {release}, as before the tune"


def needs_gpus(needs: int, endpoint: str, gpus: int) -> str:
    """Return what is said of a size of so many GPUs where the endpoint has fewer."""
    needed = NEEDS_GPUS.format(needs=needs, each="", endpoint=endpoint, gpus=gpus)
    return f"{needs}{needed}{FEWER_GPUS.format(gpus=gpus, size=gpus)}"


def pattern(text: str, **names: str) -> str:
    """Return a regular expression for a text: one of each name that is given, and anything for the others."""
    named = re.sub(r"\{(\w+)\}", lambda name: f"\0{name[1]}\0", text)
    return re.sub("\0(\\w+)\0", lambda name: names.get(name[1], ".+?"), re.escape(named))


# -- init

LEFT_OUT = "left out: {host} ({why})"
KEY_NOT_KNOWN = "its host key is not in known_hosts: it shows "
KEY_CHANGED = "its host key is another one than known_hosts has"
NO_SITE_WRITTEN = "no file of the site was written"
DRIVER_PENDING = "staged: pending"
DRIVER_OVER_KERNEL = "would write over the kernel that runs"
DRIVER_WITHOUT_GRUB = "by which GRUB boots it once"
SEVERAL_DRIVERS = "rack {rack} has several drivers"
NONE_USUAL = ", none of them usual: "
NO_DRIVER_STEP = "deploy.py does not call driver()"
NO_MODULES = "apt knows no kernel modules of NVIDIA's driver {version}; "
NO_COMPANION = "which this machine needs beside it"
RESTARTS_WITH = "restarts with the others of its endpoint"
NO_WAY_BACK = "there is no way back"
