"""A small site that only stages, for the lab tests of registry, image, encodings and models."""
