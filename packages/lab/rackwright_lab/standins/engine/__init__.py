"""A strict stand-in for TensorRT-LLM: this folder is the lab image's `tensorrt_llm` package.

It serves no model. It refuses what the real `trtllm-serve` of the same version refuses, takes time to
load, listens only when ready, and answers simple questions, so that a deployment is tried for real.
"""

from __future__ import annotations

import os

__version__ = os.environ.get("TRTLLM_STANDIN_VERSION", "1.2.0rc6")
