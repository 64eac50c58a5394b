"""Sums and signature of a bundle: who wrote it, and whether it is whole.

Signed by minisign itself, which asks for its key's password; verified here, since the control machine of a closed
network need not have it. Format: https://jedisct1.github.io/minisign/
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from rackwright.messages import RackwrightError

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.minisig"
COMMENT = "trusted comment: "
HASHED = b"ED"
"""Algorithm of signatures over a hash, which minisign makes since 0.8."""


@dataclass(frozen=True)
class Signature:
    """A signature file's content."""

    key: bytes
    """The 8 bytes that name the key."""
    over_sums: bytes
    comment: str
    over_comment: bytes


def program_for(key: Path) -> str:
    """Return minisign's path. Raises RackwrightError where it is missing, or the key is."""
    program = shutil.which("minisign")
    if program is None:
        text = "--sign needs minisign, which is not installed; next: apt-get install minisign, and the same command"
        raise RackwrightError(text, code="RW3853")
    if not key.is_file():
        raise RackwrightError(f"--sign {key} is not a file; next: ls -l {key.parent}", code="RW3853")
    return program


def sign(folder: Path, key: Path, comment: str) -> None:
    """Sign a bundle's sums; minisign asks for its key's password. Raises RackwrightError where it ends badly."""
    words = [program_for(key), "-S", "-s", str(key), "-t", comment, "-x", SIGNATURE, "-m", SUMS]
    done = subprocess.run(words, cwd=folder, check=False, stdout=subprocess.DEVNULL)
    if done.returncode:
        text = f"minisign did not sign with {key}: its lines above say why; all is in the bundle, unsigned"
        raise RackwrightError(f"{text}; next: the same command again", code="RW3853")


def refuse_other_signature(folder: Path, public_key: str) -> None:
    """Raise RackwrightError unless the sums are signed by this key, a line of minisign's."""
    path = folder / SIGNATURE
    if not path.is_file():
        raise _refused(folder, "it is not signed, and bundle.public_key is set")
    raw = base64.b64decode(public_key)
    try:
        found = parse(path.read_text())
    except (ValueError, UnicodeDecodeError):
        raise _refused(folder, f"{SIGNATURE} is not a signature of minisign's") from None
    if found.key != raw[2:10]:
        raise _refused(
            folder, f"it is signed by the key {_named(found.key)}, and bundle.public_key is {_named(raw[2:10])}"
        )
    key = Ed25519PublicKey.from_public_bytes(raw[10:])
    try:
        key.verify(found.over_sums, hashlib.blake2b((folder / SUMS).read_bytes()).digest())
        key.verify(found.over_comment, found.over_sums + found.comment.encode())
    except (InvalidSignature, OSError):
        raise _refused(folder, f"its signature is not of this {SUMS}: one of them was changed") from None


def parse(text: str) -> Signature:
    """Parse a signature file. Raises ValueError for any other."""
    rows = text.splitlines()
    if len(rows) < 4 or not rows[2].startswith(COMMENT):
        raise ValueError("not a signature file")
    try:
        raw, over_comment = base64.b64decode(rows[1], validate=True), base64.b64decode(rows[3], validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    if raw[:2] != HASHED or len(raw) != 74 or len(over_comment) != 64:
        raise ValueError("not a signature of this algorithm")
    return Signature(raw[2:10], raw[10:], rows[2].removeprefix(COMMENT), over_comment)


def _named(key: bytes) -> str:
    """Return a key's name as minisign prints it."""
    return key[::-1].hex().upper()


def _refused(folder: Path, why: str) -> RackwrightError:
    text = f"the bundle in {folder} is not used: {why}; next: copy it again, with the signature of its author"
    return RackwrightError(text, code="RW3863")
