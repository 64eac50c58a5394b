"""The serving images: pulled by digest where it is resolved, else by tag, whose digest is then recorded.

The record is stored on the host (`IMAGES/*`, a row `REFERENCE DIGEST` each): a tag that moves later, here or at
the registry, changes nothing until an operator requests it (DECISIONS 12, 18).
"""

from rackwright.concerns.image.concern import (
    ADDRESS,
    FILES,
    IMAGE,
    NAMES_TAG,
    PINS,
    LocalImage,
    SeenImages,
    WantedImage,
    digest_of,
    folder_name,
    keeps_files,
    not_asked,
    parse,
    pin_path,
    pull_job,
    remove_names_script,
)

__all__ = [
    "ADDRESS",
    "FILES",
    "IMAGE",
    "NAMES_TAG",
    "PINS",
    "LocalImage",
    "SeenImages",
    "WantedImage",
    "digest_of",
    "folder_name",
    "keeps_files",
    "not_asked",
    "parse",
    "pin_path",
    "pull_job",
    "remove_names_script",
]
