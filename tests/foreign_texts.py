"""Texts of other programs that tests wait for: engines, drivers, dockerd and Ansible. Each is here alone."""

from __future__ import annotations

# Docker and the driver.
DOCKERD_TWICE = "as a flag and in the configuration file: {key}"
NVML_MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"

# Ansible.
NO_PASSWORD_FILE = "The vault password file {path} was not found"

# Engines.
NOT_BOUND = "Failed to bind socket to {address}"
NO_GPUS = "No GPU devices found on the node"
NO_VOCABULARY = "error downloading or loading vocab file"
SIGQUIT = "Received sigquit from a child process"
NO_MODEL = "The model `{model}` does not exist."
GREEDY_ONCE = "n must be 1 when using greedy sampling"
NOT_YAML = "Config file must be of a yaml/yml type. {suffix} supplied"
ENGINE_FAILED = "Engine core initialization failed"
UNKNOWN_ARGUMENT = "unexpected keyword argument '{name}'"
WRONG_VALUE = "{field}: Input should be"
