"""Commands about checkpoints, adapters and protocols."""
