"""The tiny policy: a vision-language model trained from scratch on one CPU core in minutes."""
