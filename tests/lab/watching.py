"""The look of a lab host at its engine, and time that passes for it: what it has noted is made older."""

from __future__ import annotations

from rackwright_lab.hosts.host import Host

LOOK = "sh /etc/rackwright/watch.d/engines"
STATE = "/run/rackwright/watch/llm"
OLDER = '($1 == "since" || $1 == "ready" || $1 ~ /_since$/) && $2 != "" { $0 = $1 "=" $2 - s } { print }'
AGE = f"awk -F= -v s=SECONDS '{OLDER}' {STATE} >{STATE}.old && mv {STATE}.old {STATE} && "


def looked(host: Host, seconds: int = 0) -> dict[str, str]:
    """Let so many seconds pass for what the host has noted, and look; return what it notes then."""
    # The timer's own look must not write between the two.
    quiet = "systemctl stop rackwright-watch.timer; systemctl start rackwright-watch.service; "
    age = AGE.replace("SECONDS", str(seconds)) if seconds else ""
    text = host.run(f"{quiet}{age}{LOOK} >/dev/null; systemctl start rackwright-watch.timer; cat {STATE}").stdout
    return dict(row.split("=", 1) for row in text.splitlines() if "=" in row)
