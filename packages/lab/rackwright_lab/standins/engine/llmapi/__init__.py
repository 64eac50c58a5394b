"""Stand-ins of tensorrt_llm.llmapi: options, and ranks over MPI."""
