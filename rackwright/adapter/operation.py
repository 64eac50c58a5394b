"""Declaring operations to pyinfra: the decorators, and the commands that an operation yields."""

from pyinfra.api import FunctionCommand, deploy, operation
from pyinfra.api.command import PyinfraCommand

__all__ = ["FunctionCommand", "PyinfraCommand", "deploy", "operation"]
