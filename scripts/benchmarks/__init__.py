"""Benchmarks of the flow, one module each, behind `scripts/bench`."""
