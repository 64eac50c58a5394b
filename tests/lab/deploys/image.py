"""deploy.py up to the image: what a bare host needs for it, and the image itself."""

from tasks import docker, image, preflight, registry

preflight()
docker()
registry()
image()
