"""A strict stand-in for vLLM, behind the names that the real package has (see rootfs.SHIMS)."""

from __future__ import annotations

import os

__version__ = os.environ.get("VLLM_STANDIN_VERSION", "0.14.1")
