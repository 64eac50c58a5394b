"""The first two steps of deploy.py alone: preflight and Docker."""

from tasks import docker, preflight

preflight()
docker()
