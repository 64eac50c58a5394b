"""Makes the data of the engines from their own sources: read as syntax trees, never imported or built."""
