"""Two hosts as one endpoint by a stand-in of vLLM."""
