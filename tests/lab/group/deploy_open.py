"""deploy.py, but for firewall(): who may reach a host of the group is nobody's business here."""

from tasks import docker, encodings, endpoint, image, models, options, preflight, registry, release

preflight()
docker()
registry()
image()
encodings()
models()
release()
options()
endpoint()
