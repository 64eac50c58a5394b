"""The state of each endpoint, read at little more than the cost of the logins."""
