"""Writers of the published benchmarks' native formats, from episodes on the simulated phone: one module per format."""
