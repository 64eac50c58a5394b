"""The hosts of a lab with this machine's own GPUs (`rackwright lab up --gpus host --engine vllm`): a real vLLM."""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.gpu import SETTINGS

globals().update(build(__file__, {"lab": [(name, {**data, **SETTINGS}) for name, data in hosts()]}))
