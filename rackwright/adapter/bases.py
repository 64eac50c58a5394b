"""Classes of pyinfra's that classes of ours inherit from, so that pyinfra shows an error as one, and never a secret."""

from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.hiddenvalue import HiddenValue

__all__ = ["HiddenValue", "PyinfraError"]
