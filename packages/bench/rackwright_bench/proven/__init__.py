"""What a comparison proved, as presets that the site keeps: which variant wins where, its settings, its figures."""
