"""Models that generate in this process: Python agents, Hugging Face transformers and vLLM without HTTP."""
