"""Run by `make wheel` in an environment that holds only the wheel: the core must not have pulled anything heavy."""

import sys
from importlib.metadata import distributions

HEAVY = {
    *("torch", "vllm", "transformers", "opencv-python", "opencv-python-headless"),
    *("onnxruntime", "matplotlib", "pandas", "ray"),
}
installed = {(distribution.metadata["Name"] or "").lower() for distribution in distributions()}
if found := sorted(installed & HEAVY):
    sys.exit(f"installing guieval without extras pulled {', '.join(found)}")
print(f"light install: {len(installed)} packages, none of {', '.join(sorted(HEAVY))}")
