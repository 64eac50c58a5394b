"""The judge of a switch: what an endpoint has answered, measured on its own host by the rules of the proof."""
