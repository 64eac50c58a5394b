"""Model folders: base and draft models at resolved commits, fetched by the real huggingface_hub and verified.

The download runs inside the serving image: the host needs no Python and no packages of Rackwright's, and the
library's version is the one that the image was tested with. It is a job of the host, one for each folder, so that two
runs never write the same file, and a lost connection stops nothing. Verified files are recorded on the host; a
converged run compares store, size, times and inode with the record, since hashing 65 GB takes minutes (DECISIONS 20).
"""

from rackwright.concerns.models.concern import (
    MANIFEST,
    MODELS,
    SeenModel,
    SeenModels,
    commit_of,
    hash_changes,
    host_path,
    is_share,
    name_of,
    parse,
    read,
    remove_script,
    sharers,
    sources_of,
)

__all__ = [
    "MANIFEST",
    "MODELS",
    "SeenModel",
    "SeenModels",
    "commit_of",
    "hash_changes",
    "host_path",
    "is_share",
    "name_of",
    "parse",
    "read",
    "remove_script",
    "sharers",
    "sources_of",
]
