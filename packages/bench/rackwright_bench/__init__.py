"""Measurements of an endpoint that serves: a suite of cells, what aiperf saw of each, and what follows from it."""
