"""Presets that the site keeps of a comparison: the variant that wins where, its settings, its figures."""
