"""Looking at many hosts without changing them: plan, drift, status."""
