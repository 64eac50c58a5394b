"""How a change reaches several hosts: order, limits, and where it stops."""
