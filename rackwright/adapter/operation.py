"""Declaring operations to pyinfra: the decorator, and the commands that an operation yields."""

from pyinfra.api import FunctionCommand, operation
from pyinfra.api.command import PyinfraCommand

__all__ = ["FunctionCommand", "PyinfraCommand", "operation"]
