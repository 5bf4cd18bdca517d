"""The data of a training: its steps and episodes, with the prompts and screenshots of an evaluation."""
