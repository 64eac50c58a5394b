"""The options of this image's version: `TorchLlmArgs(model=..., **yaml)` refuses what the server refuses."""

from __future__ import annotations

from .. import __version__
from .models import torch_llm_args

TorchLlmArgs = torch_llm_args(__version__)
LlmArgs = TorchLlmArgs
