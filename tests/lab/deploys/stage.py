"""deploy.py up to where an endpoint would be switched: everything that is fetched is fetched."""

from tasks import docker, encodings, image, models, preflight, registry

preflight()
docker()
registry()
image()
encodings()
models()
