"""Rackwright turns bare-metal GPU hosts into LLM endpoints that have proven they answer."""

__version__ = "0.2.0"
