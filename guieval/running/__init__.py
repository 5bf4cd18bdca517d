"""From a configuration to a finished run: settings, set-up, the runner, resume and progress."""
