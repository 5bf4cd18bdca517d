"""Studies of finished runs: decisions, reasoning-execution consistency, history mixing, data selection and scaling laws."""
