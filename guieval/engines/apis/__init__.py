"""Native APIs of hosted models through their makers' SDKs: one module an API; ``native`` and ``hosted`` are shared."""
