"""Take drained hosts into service again: started, asked, unmarked."""

from rackwright.operations.maintenance import undrain

undrain(name="The host serves again what it served before it was drained")
