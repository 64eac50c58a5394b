"""The version of vLLM that is asked: RACKWRIGHT_REAL_VLLM, or the one that the stand-in was made after."""

from __future__ import annotations

import os

from rackwright_lab.real.builds import DEFAULT, named

BUILD = named(os.environ.get("RACKWRIGHT_REAL_VLLM", DEFAULT))
