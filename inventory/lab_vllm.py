"""The hosts of a lab with a real vLLM (`rackwright lab up --engine vllm`): its CPU build, and its small model."""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.vllm import SETTINGS

globals().update(build(__file__, {"lab": [(name, {**data, **SETTINGS}) for name, data in hosts()]}))
