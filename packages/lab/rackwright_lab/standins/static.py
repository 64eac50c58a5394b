"""Static trees: STATE/static/HOST/... answered under that host's name, read again at each request."""

from __future__ import annotations

import hashlib
import mimetypes
from email.utils import formatdate
from pathlib import Path

from .answer import Answer, Request


def static_answer(root: Path, request: Request) -> Answer:
    """Answer with the file that the host's tree has at this path, or 404. Never leaves the tree."""
    tree = (root / request.host).resolve()
    file = (tree / request.path.lstrip("/")).resolve()
    if not file.is_relative_to(tree) or not file.is_file():
        return Answer(404, {"Content-Type": "text/plain"}, b"The specified resource does not exist.\n")
    status = file.stat()
    tag = hashlib.sha1(f"{status.st_mtime_ns}-{status.st_size}".encode()).hexdigest()
    headers = {
        "ETag": f'"{tag}"',
        "Last-Modified": formatdate(status.st_mtime, usegmt=True),
        "Content-Type": mimetypes.guess_type(file.name)[0] or "application/octet-stream",
    }
    return Answer(200, headers, file=file)
