"""Take hosts out of service: marked, without clients, stopped."""

from rackwright.operations.maintenance import drain

drain(name="The host is drained, and its endpoints rest")
