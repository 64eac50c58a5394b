"""The switch of an endpoint to another release: its job on the host, its events, and the ways back."""
