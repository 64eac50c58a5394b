"""A strict stand-in for SGLang, behind the names that the real package has (see rootfs.SHIMS)."""

from __future__ import annotations

import os

__version__ = os.environ.get("SGLANG_STANDIN_VERSION", "0.5.8")
