"""The settings of a host: sections, connection data, and where each value was written."""
