"""The runs that an assistant may read: those below one folder, and no path out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from guieval.errors import UsageError, nearest
from guieval.reports.past_runs import run_directories


@dataclass(frozen=True)
class AllowedRuns:
    """The folder below which all runs are."""

    folder: Path

    def existing(self, name: str) -> Path:
        """A run, or a folder of runs, by its path below the folder.

        A path that begins with the folder itself, as results name it, is the same run. Raises :class:`UsageError` for a path
        that leaves the folder, also by a symbolic link, and with the nearest name for one that does not exist.
        """
        inside = self.inside(name)
        if inside.exists():
            return inside
        known = (
            []
            if not self.folder.is_dir()
            else [run.relative_to(self.folder).as_posix() for run in run_directories(self.folder)]
        )
        more = nearest(name, known) or (f"; there are {', '.join(known[:20])}" if known else "; there are none")
        raise UsageError(f"there is no run {name!r} in {str(self.folder)!r}{more}")

    def inside(self, name: str) -> Path:
        """A path below the folder, whether it exists or not; :class:`UsageError` if it leaves the folder."""
        given = Path(name)
        path = given if given.is_relative_to(self.folder) else self.folder / given
        if not name.strip() or not path.resolve().is_relative_to(self.folder.resolve()):
            raise UsageError(
                f"{name!r} is outside of the folder of runs {str(self.folder)!r}: expected the path of a run below it"
            )
        return path
