"""Data: the benchmark contract, typed reading of annotations, screenshots, overlays, sample sets and selection."""
