"""Bring endpoints back to releases that their hosts keep, in waves; nothing is downloaded."""

from rackwright.operations.endpoints import line_up_back, switch_back

line_up_back(name="Hosts that roll back are queued in inventory order")
switch_back(name="Each endpoint runs its earlier release and has answered")
