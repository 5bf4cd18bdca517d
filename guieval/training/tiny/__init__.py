"""The tiny policy: a vision-language model small enough to be trained on one CPU core in minutes, made from nothing."""
