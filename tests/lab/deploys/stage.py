"""deploy.py up to where an endpoint would be switched: everything that is fetched is fetched."""

from tasks.docker import docker
from tasks.encodings import encodings
from tasks.image import image
from tasks.models import models
from tasks.preflight import preflight
from tasks.registry import registry

preflight()
docker()
registry()
image()
encodings()
models()
