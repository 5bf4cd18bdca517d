"""Downloads of benchmarks from the Hugging Face hub."""
