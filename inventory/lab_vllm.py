"""The hosts of a lab with a real vLLM (`rackwright lab up --engine vllm`): its CPU build, and its small model."""

from rackwright.inventory import build
from rackwright_lab.inventory import endpoint, hosts

globals().update(build(__file__, {"lab": [(name, {**data, **endpoint()}) for name, data in hosts()]}))
