"""What verl loads in each of its processes, by the entry point ``verl.plugins``: loop and trainers register themselves."""

from guieval.training.verl.loop import GuiLoop
from guieval.training.verl.trainer import GuiColocateAsyncTrainer, GuiSemiOnlineTrainer, GuiSeparateAsyncTrainer

__all__ = ["GuiColocateAsyncTrainer", "GuiLoop", "GuiSemiOnlineTrainer", "GuiSeparateAsyncTrainer"]
