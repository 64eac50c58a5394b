"""Two hosts as one endpoint by engines whose members live together in another way than vLLM's."""
