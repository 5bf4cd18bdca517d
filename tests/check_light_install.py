"""Run by `make wheel` in an environment that has only the wheel: the core must not have pulled anything heavy.

The description that an index shows has the README without links into the repository.
"""

import re
import sys
from importlib.metadata import distributions, metadata

HEAVY = {
    *("torch", "vllm", "transformers", "opencv-python", "opencv-python-headless"),
    *("onnxruntime", "matplotlib", "pandas", "ray"),
}
installed = {(distribution.metadata["Name"] or "").lower() for distribution in distributions()}
if found := sorted(installed & HEAVY):
    sys.exit(f"installing guieval without extras pulled {', '.join(found)}")
print(f"light install: {len(installed)} packages, none of {', '.join(sorted(HEAVY))}")
described = metadata("guieval")["Description"]
dead = re.findall(r"\]\((?!https:)[^)]*\)", described)
if "## First run" not in described or dead:
    sys.exit(f"the description of the package is not the README without its links: {dead[:3]}")
