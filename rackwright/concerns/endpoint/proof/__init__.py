"""What an endpoint is asked, and what counts as an answer."""
