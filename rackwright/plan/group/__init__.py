"""What an endpoint of several hosts has besides: words for its server, and files in its release."""

from rackwright.plan.group.files import member_files
from rackwright.plan.group.words import first_member_words, member_environment, member_words

__all__ = ["first_member_words", "member_environment", "member_files", "member_words"]
