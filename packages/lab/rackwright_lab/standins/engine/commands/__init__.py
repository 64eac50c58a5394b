"""Stand-ins of the commands of tensorrt_llm."""
