"""The steps of deploy.py, one module each."""

from tasks.close_direct import close_direct
from tasks.converged import converged
from tasks.docker import docker
from tasks.dockerd import dockerd
from tasks.encodings import encodings
from tasks.endpoint import endpoint
from tasks.firewall import firewall
from tasks.gateway import gateway
from tasks.image import image
from tasks.models import models
from tasks.options import options
from tasks.preflight import preflight
from tasks.registry import registry
from tasks.release import release
from tasks.retention import retention
from tasks.watch import watch

__all__ = [
    "close_direct",
    "converged",
    "docker",
    "dockerd",
    "encodings",
    "endpoint",
    "firewall",
    "gateway",
    "image",
    "models",
    "options",
    "preflight",
    "registry",
    "release",
    "retention",
    "watch",
]
