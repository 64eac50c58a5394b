"""Take hosts out of service: marked, without clients, stopped."""

from rackwright.operations.maintenance import drain, rest_followers

drain(name="The host is drained, and its endpoints rest")
rest_followers(name="What serves with a head that rests is stopped")
