"""A canary on trial beside its peers, which serve the release before: how fast each is at the same time."""
