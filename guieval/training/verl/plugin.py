"""verl loads this in each of its processes (entry point ``verl.plugins``); loops and trainers register themselves."""

from guieval.training.verl.loop import GuiLoop
from guieval.training.verl.online_loop import OnlineLoop
from guieval.training.verl.trainer import GuiColocateAsyncTrainer, GuiSemiOnlineTrainer, GuiSeparateAsyncTrainer

__all__ = ["GuiColocateAsyncTrainer", "GuiLoop", "GuiSemiOnlineTrainer", "GuiSeparateAsyncTrainer", "OnlineLoop"]
