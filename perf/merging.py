"""What the driver of a cluster run spends on a record: a run's own journal is merged into an empty copy of that run.

python perf/merging.py RUN
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from guieval.cluster.merging import Merger
from guieval.journal import EPISODES, MANIFEST, STEPS, Journal, RunFolder
from guieval.journal.lines import read_line
from guieval.running.config import parse
from guieval.running.resolve import resolve


def main() -> None:
    """Print CPU time and bytes a record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run directory of any finished run")
    source: Path = parser.parse_args().run
    lines = (source / STEPS).read_bytes()
    with tempfile.TemporaryDirectory(prefix="guieval-merging-") as folder:
        directory = Path(folder)
        for name in (MANIFEST, EPISODES):
            shutil.copy(source / name, directory / name)
        run = resolve(parse(RunFolder(source).manifest.config.to_json()))
        with Journal(directory) as journal:
            merger = Merger(run, journal)
            started = time.process_time()
            for line in lines.splitlines():
                merger.add(read_line(line))
            spent, added = time.process_time() - started, journal.appended
    print(f"{added:,} records of {len(lines) / added:,.0f} bytes: {1e6 * spent / added:.0f} us of CPU a record")


if __name__ == "__main__":
    main()
