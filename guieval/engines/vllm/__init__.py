"""vLLM servers that guieval starts for a run and stops after it."""
