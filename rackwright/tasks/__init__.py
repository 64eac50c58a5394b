"""The steps of deploy.py, one module each; a site takes them from here by its tasks/__init__.py."""

from rackwright.tasks.close_direct import close_direct
from rackwright.tasks.converged import converged
from rackwright.tasks.docker import docker
from rackwright.tasks.dockerd import dockerd
from rackwright.tasks.driver import driver
from rackwright.tasks.encodings import encodings
from rackwright.tasks.endpoint import endpoint
from rackwright.tasks.firewall import firewall
from rackwright.tasks.gateway import gateway
from rackwright.tasks.image import image
from rackwright.tasks.models import models
from rackwright.tasks.options import options
from rackwright.tasks.preflight import preflight
from rackwright.tasks.registry import registry
from rackwright.tasks.release import release
from rackwright.tasks.retention import retention
from rackwright.tasks.watch import watch

__all__ = [
    "close_direct",
    "converged",
    "docker",
    "dockerd",
    "driver",
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
