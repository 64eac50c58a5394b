"""What the stand-ins of vLLM and SGLang share, on top of the engine that answers."""
