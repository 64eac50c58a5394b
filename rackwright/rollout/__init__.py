"""A change over many hosts: waves, the gate, limits, quarantine, going on."""
