"""The previous flat keys, and the section where each is now: refused with the new name."""

from __future__ import annotations

RENAMED_KEYS = {
    "docker_users": "docker.users",
    "docker_source": "docker.source",
    "docker_daemon": "docker.daemon",
    "container_toolkit": "docker.toolkit_version",
    "hold_packages": "docker.hold_packages",
    "firewall_confirm": "firewall.confirm_timeout",
    "check_keys": "registry.check_key",
    "hub_token": "models.hub_token",
    "verify_deep": "models.verify_deep",
    "models_dir": "models.folder",
    "encodings_dir": "encodings.folder",
    "private_ca": "paths.private_ca",
    "lock_file": "paths.lock_file",
    "stall_timeout": "downloads.stall_timeout",
    "stage_parallel": "downloads.parallel",
    "download_rate_mib": "downloads.rate_mib",
    "max_unavailable": "rollout.max_unavailable",
    "wave": "rollout.wave",
    "bake": "rollout.bake",
    "hooks": "rollout.hooks",
    "canary": "rollout.canary",
    "error_budget": "rollout.error_budget",
    "adopt": "rollout.adopt",
    "keep_releases": "releases.keep",
    "foreign_units": "releases.foreign_units",
    "rack": "hardware.rack",
    "commit_deadline": "gate.commit_deadline",
}
"""Old top-level key, and the new one with its section."""
