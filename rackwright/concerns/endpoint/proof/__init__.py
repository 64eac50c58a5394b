"""Questions for an endpoint, and the checks of its answers."""
