"""Endpoints: the unit runs the wanted release, it answers, and it has been proven."""
