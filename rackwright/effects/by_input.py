"""Scripts that travel by standard input: `ps` shows nothing of them, and they may be longer than an argument. Pure."""

from __future__ import annotations

MOST = 32 * 1024
"""Bytes of a script that go as an argument. Linux takes 128 KiB, of which each shell on the way quotes a part."""
_WHOLE = "# whole"
"""Ends a script: of one that was cut nothing must run."""


class Unshown(str):
    """A text that logs show as a word; what is written of it to a host is the text itself, its last line closed.

    pyinfra would format one that has none to add it, and so send the word.
    """

    def __new__(cls, text: str) -> Unshown:
        """Close the last line."""
        return super().__new__(cls, text if text.endswith("\n") else text + "\n")

    def __str__(self) -> str:
        return "*not shown*"

    __repr__ = __str__

    def __format__(self, _: str) -> str:
        return str(self)


def receiver(script: str, title: str) -> str:
    """The line that runs on the host; it reads the script and leaves the rest of standard input to it.

    title: one line that says in `ps` what it is.
    """
    size = len(framed(script).encode())
    return (
        f"# {title}\n"
        f'rackwright_script=$(head -c {size}) && case $rackwright_script in *"{_WHOLE}") eval "$rackwright_script" ;; '
        '*) echo "the connection was cut while a script arrived, so nothing was done" >&2; exit 1 ;; esac'
    )


def framed(script: str) -> str:
    """What is sent before anything else."""
    return f"{script}\n{_WHOLE}"
