"""Let DCGM test the GPUs of hosts that serve nothing."""

from rackwright.operations.diagnosis import diagnose

diagnose(name="DCGM tests the GPUs of each host")
