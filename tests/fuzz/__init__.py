"""Fuzz targets: what comes from outside, mutated, at each boundary of the program.

A target reads hostile material of one kind (:data:`tests.fuzz.targets.TARGETS`) and says what is wrong with how it is taken.
A case is made from its seed alone, so a case that fails is repeated by ``python -m tests.fuzz TARGET --seed N --cases 1``.
"""
