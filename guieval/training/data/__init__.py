"""What a training learns from: its steps and episodes, with the prompts and screenshots of an evaluation."""
