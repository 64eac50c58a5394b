"""Taking everything of ours off a host again."""
