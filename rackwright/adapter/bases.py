"""Base classes from pyinfra, so that pyinfra prints Rackwright's errors as text and never prints a secret."""

from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.hiddenvalue import HiddenValue

__all__ = ["HiddenValue", "PyinfraError"]
