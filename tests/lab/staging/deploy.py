"""Stage only: nothing is started."""

from tasks.encodings import encodings
from tasks.image import image
from tasks.models import models
from tasks.registry import registry

registry()
image()
encodings()
models()
