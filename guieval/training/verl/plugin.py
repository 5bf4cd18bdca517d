"""What verl loads in each of its processes, by the entry point ``verl.plugins``: loop and trainer register themselves."""

from guieval.training.verl.loop import GuiLoop
from guieval.training.verl.trainer import GuiSemiOnlineTrainer

__all__ = ["GuiLoop", "GuiSemiOnlineTrainer"]
