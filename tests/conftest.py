"""What all tests share."""

from hypothesis import settings

# A busy machine is no failure: two cores also run the lab's hosts.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
