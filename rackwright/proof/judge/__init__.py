"""The judge of a switch: what an endpoint has answered, measured by the rules of `rackwright.proof` on its own host."""
