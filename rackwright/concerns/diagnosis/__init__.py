"""Diagnosis: DCGM tests the GPUs of a host that serves nothing, and its report says which of them are broken."""
