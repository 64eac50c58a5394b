"""GPUs of lab hosts: the stand-ins that pose as them, and this machine's own."""
