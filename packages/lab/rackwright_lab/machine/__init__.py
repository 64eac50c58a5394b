"""What the lab uses of this machine: control groups, network, memory and packages."""
