"""Tests of training; those with TRL run by `make test-train`."""
