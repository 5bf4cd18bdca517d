"""TRL's trainers with what UI-S1 and DAPO need of them. They import torch and TRL; only code that trains imports them."""
