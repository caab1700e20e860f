"""Benchmarks; see README.md here and `make bench`."""
