"""The pyinfra operation of `rackwright diagnose`, and the record's entry of every diagnosis."""

from __future__ import annotations

from rackwright.adapter.host import Host, this_host
from rackwright.adapter.operation import operation
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.diagnosis.changes import asked_changes
from rackwright.concerns.diagnosis.seen import HostDiagnosis
from rackwright.concerns.gpus import GPUS
from rackwright.messages import coded
from rackwright.operations.hostrun import Commands, decide_and_carry_out, fail, reading_of, unreadable
from rackwright.record.cause import Cause
from rackwright.record.fault import Fault
from rackwright.record.handover import received
from rackwright.record.journal import note


@operation()
def diagnose() -> Commands:
    """Let DCGM test the GPUs of a host that serves nothing, at the level of the handover."""
    host, level = this_host(), received().level
    group = settings_of(host).group
    hosts = group.hosts if group else (host.name,)
    yield from decide_and_carry_out(host, lambda reading: asked_changes(reading, hosts, level))
    if not host.state.is_executing:
        return
    reading = reading_of(host, whole=True)
    if reading is None:
        yield from unreadable(host)
        return
    yield from _judged(host, reading[GPUS].diagnosis.last)


def _judged(host: Host, last: HostDiagnosis | None) -> Commands:
    """Fail a host whose GPUs failed, or were not tested."""
    note_diagnosis(host, last)
    if last is None or last.report.error:
        why = last.report.error if last else "the host has kept no report"
        yield fail(coded("RW2617", f"the GPUs were not tested: {why}; next, on the host: dcgmi diag -r 1"))
    elif last.verdict == "fail":
        yield fail(coded("RW2657", last.reason))


def note_diagnosis(host: Host, last: HostDiagnosis | None) -> None:
    """Write a diagnosis into the record; a failed one is a fault of the host's own, which puts it in quarantine."""
    if last is None:
        return
    found = last.report
    rows = [(row.verdict, row.where, row.test, row.text) for row in found.rows("fail", "warn")]
    values = {"dcgm": found.version, "driver": found.driver, "error": found.error, "summary": found.summary()}
    note("diagnosis", host=host.name, level=last.level, verdict=last.verdict, seconds=last.seconds, rows=rows, **values)
    if last.verdict == "fail":
        note("failure", host=host.name, cause=Cause.GPU, check=last.reason, wave=0, fault=Fault.HOST)
