"""The first two steps of deploy.py alone: preflight and Docker."""

from tasks.docker import docker
from tasks.preflight import preflight

preflight()
docker()
