"""TRL's trainers with what UI-S1 and DAPO need of them. They import torch and TRL; only code that trains imports them.

Tried with CPUs, one process and two (DDP). Not run: GPUs and their 16-bit formats, vLLM, DeepSpeed, FSDP.
"""
