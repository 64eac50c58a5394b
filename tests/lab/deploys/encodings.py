"""The encodings alone: the smallest thing that a host fetches."""

from tasks import encodings

encodings()
