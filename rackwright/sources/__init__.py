"""Registry and model hub as the control machine asks them: only for the lock file, and never for bytes of weights."""
