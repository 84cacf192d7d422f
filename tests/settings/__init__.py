"""Settings: names, defaults, values, contradictions. What each setting does is tested where it is used."""
