"""Stage only: nothing is started."""

from tasks import encodings, image, models, registry

registry()
image()
encodings()
models()
