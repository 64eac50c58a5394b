"""Images that hosts of a run take from each other: one copy from the registry, handed on as models are.

The first host takes an image's files from its registry, by their digests, and hands each piece on while it receives;
every host then loads them into its own Docker by an ordinary pull, from a registry of its own on a loopback address:
so its store, whichever it is, has the pinned digest.
"""

from rackwright.concerns.handed_images.fleet import image_keepers, images_asked_for, is_image, label_of
from rackwright.concerns.handed_images.images import handed_on, image_sharers

__all__ = ["handed_on", "image_keepers", "image_sharers", "images_asked_for", "is_image", "label_of"]
