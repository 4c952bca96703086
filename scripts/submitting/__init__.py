"""A run on a Ray cluster, sent from this checkout (`scripts/submit`)."""
