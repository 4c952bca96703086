"""Days of records made by seed, with the truth about them kept outside the input."""
