"""What concerns a corpus: a day of records in, a retrospective out. One module per station."""
