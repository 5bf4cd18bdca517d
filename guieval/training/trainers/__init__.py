"""TRL's trainers, extended for UI-S1 and DAPO. They import torch and TRL, so only code that trains imports them.

Tested with CPUs, one process and two (DDP). Not tested: GPUs and their 16-bit formats, vLLM, DeepSpeed, FSDP.
"""
