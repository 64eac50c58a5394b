"""The lab's servers: registry, repositories, web stand-ins, names and proxy."""
