"""The Hugging Face hub: files of benchmarks and checkpoints, by ``huggingface_hub``, which resumes what stopped; and uploads.

``downloads.yaml`` next to the loaders has what is downloaded for each benchmark. ``HF_ENDPOINT`` names another hub (a mirror)
and ``HF_TOKEN`` an account, as everywhere with that library.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from guieval.data.files import open_file, read_text
from guieval.data.names import path_inside
from guieval.data.yaml_text import read_yaml
from guieval.errors import DataError, UsageError, nearest

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_MOST_UNPACKED = 100
"""How many times larger than an archive its content may be; text seldom shrinks to a twentieth."""
_Text = Annotated[str, Field(min_length=1)]


class Download(BaseModel):
    """The files of a data set on the hub that a loader reads."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: _Text
    files: Annotated[tuple[_Text, ...], Field(min_length=1)]
    unpack: tuple[_Text, ...] = ()
    gigabytes: Annotated[float, Field(gt=0)] | None = None
    then: str = ""


def read_downloads(file: Path) -> Mapping[str, Download]:
    """The downloads by benchmark."""
    return TypeAdapter(dict[str, Download]).validate_python(read_yaml(read_text(file)))


@dataclass(frozen=True)
class Offer:
    """A data set on the hub: its address, the revision's commit, the card's licence, and the files with their bytes."""

    download: Download
    place: str
    commit: str
    licence: str
    files: dict[str, int]

    @property
    def size(self) -> int:
        return sum(self.files.values())

    def missing(self, folder: Path) -> int:
        """How many bytes are still to be downloaded into ``folder``; a file of the right size counts as there.

        Raises :class:`DataError` for a name in the hub's list that leads out of the folder.
        """
        paths = {name: _checked(folder, name, self.place) for name in self.files}
        there = {name for name, path in paths.items() if path.is_file() and path.stat().st_size == self.files[name]}
        return sum(size for name, size in self.files.items() if name not in there)


def _api(what: str = "downloads") -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise UsageError(f"{what} need the package huggingface_hub: pip install 'guieval[hub]'") from None
    return HfApi()


def _place(download: Download, api: HfApi) -> str:
    return f"{api.endpoint}/datasets/{download.repository}"


@contextmanager
def _sentences(download: Download, api: HfApi) -> Iterator[None]:
    """The hub's refusals as sentences."""
    from huggingface_hub import errors

    place = _place(download, api)
    try:
        yield
    except errors.OfflineModeIsEnabled:
        raise UsageError(f"{place} could not be read: HF_HUB_OFFLINE is set; unset it to download") from None
    except errors.GatedRepoError:
        raise UsageError(f"{place} asks for its terms to be accepted: accept them there, then set HF_TOKEN") from None
    except errors.RevisionNotFoundError:
        names = _revisions(api, download.repository)
        known = f"; known: {', '.join(names)}" if names else ""
        close = nearest(download.revision, names)
        raise UsageError(f"{place} has no revision {download.revision!r}{close}{known}, or a commit") from None
    except errors.RepositoryNotFoundError:
        raise UsageError(f"{place} does not exist, or is private (set HF_TOKEN to an account that may read it)") from None
    except (errors.HTTPError, errors.LocalEntryNotFoundError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{place} could not be read: {reason}; give the command again to continue") from None


def _revisions(api: HfApi, repository: str) -> list[str]:
    from huggingface_hub import errors

    try:
        refs = api.list_repo_refs(repository, repo_type="dataset")
    except errors.HTTPError:
        return []
    return [ref.name for ref in (*refs.branches, *refs.tags)]


def look_up(download: Download) -> Offer:
    """Ask the hub for the files of a download and their sizes."""
    api = _api()
    with _sentences(download, api):
        info = api.dataset_info(download.repository, revision=download.revision, files_metadata=True)
    files = {
        file.rfilename: file.size or 0
        for file in info.siblings or []
        if any(fnmatch(file.rfilename, pattern) for pattern in download.files)
    }
    if not files:
        raise UsageError(
            f"{_place(download, api)} has none of the expected files at revision "
            f"{download.revision!r}: {', '.join(download.files)}"
        )
    stated = info.card_data.get("license") if info.card_data is not None else None
    licence = ", ".join(stated) if isinstance(stated, list) else str(stated or "")
    return Offer(download, _place(download, api), str(info.sha), licence, files)


def get(offer: Offer, folder: Path) -> None:
    """Download an offer's files into ``folder``, continuing an earlier attempt, and unpack its archives."""
    from huggingface_hub import snapshot_download

    needed = offer.missing(folder)
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(above).free
    if needed > free:
        raise UsageError(f"{str(folder)!r} has room for {in_units(free)}; {in_units(needed)} are to be downloaded")
    with _sentences(offer.download, _api()):
        snapshot_download(
            offer.download.repository,
            repo_type="dataset",
            revision=offer.commit,
            local_dir=folder,
            allow_patterns=list(offer.download.files),
        )
    for name in offer.download.unpack:
        if name in offer.files:
            unpack(_checked(folder, name, offer.place))


def checkpoint_folder(name: str, files: Sequence[str]) -> Path:
    """The folder in the cache (``HF_HOME``) with those of ``files`` that a checkpoint has; without a network, an earlier copy.

    Raises :class:`UsageError` if the checkpoint is unknown, and if neither the hub nor the cache can be read.
    """
    api = _api()
    from huggingface_hub import errors, snapshot_download, utils

    shown = not utils.are_progress_bars_disabled()
    utils.disable_progress_bars()  # a few kilobytes need none
    try:
        return Path(snapshot_download(name, allow_patterns=list(files)))
    except errors.GatedRepoError:
        why = "asks for its terms to be accepted: accept them there, then set HF_TOKEN"
    except errors.RepositoryNotFoundError:
        why = "does not exist, or is private (set HF_TOKEN to an account that may read it)"
    except (errors.HTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        why = "cannot be read, and the cache (HF_HOME) has no copy"
    finally:
        if shown:
            utils.enable_progress_bars()
    raise UsageError(f"{api.endpoint}/{name} {why}")


def unpack(archive: Path) -> None:
    """Unpack a ZIP file into its folder, except what is there in full; refuses names that lead out of the folder."""
    again = "delete it and give the command again"
    try:
        with open_file(archive) as stream, zipfile.ZipFile(stream) as packed:
            members = packed.infolist()
            total, size = sum(member.file_size for member in members), archive.stat().st_size
            if total > _MOST_UNPACKED * size + (1 << 20):
                raise DataError(f"{str(archive)!r} of {in_units(size)} would unpack to {in_units(total)}; {again}")
            if total > (free := shutil.disk_usage(archive.parent).free):
                raise DataError(f"{str(archive)!r} unpacks to {in_units(total)}, and there is room for {in_units(free)}")
            if any(member.flag_bits & 1 for member in members):
                raise DataError(f"{str(archive)!r} cannot be unpacked: it is encrypted; {again}")
            for member in members:
                target = _checked(archive.parent, member.filename, str(archive))
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise DataError(f"{str(archive)!r} holds {member.filename!r}, which leads out of its folder")
                if not (target.is_file() and target.stat().st_size == member.file_size):
                    packed.extract(member, archive.parent)
    except OSError as error:
        raise DataError(f"{str(archive)!r} cannot be unpacked: {error.strerror or error}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, struct.error, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{str(archive)!r} cannot be unpacked: {error}; {again}") from None


def _checked(folder: Path, name: str, place: str) -> Path:
    try:
        return path_inside(folder, name)
    except ValueError as error:
        raise DataError(f"{place} holds {name[:200]!r}, which {error}") from None


def in_units(size: int) -> str:
    """A number of bytes as people read it."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size} bytes"


def upload(folder: Path, repository: str, *, public: bool = False, message: str) -> str:
    """Upload a folder as one commit, and create the data set, private unless ``public``, if there is none; the commit's URL.

    Raises :class:`UsageError` if the hub refuses or cannot be reached.
    """
    api = _api("uploads")
    from huggingface_hub import errors

    place = f"{api.endpoint}/datasets/{repository}"
    try:
        api.create_repo(repository, repo_type="dataset", private=not public, exist_ok=True)
        done = api.upload_folder(repo_id=repository, repo_type="dataset", folder_path=folder, commit_message=message)
    except errors.HFValidationError:
        raise UsageError(f"{repository!r} is not a name of a data set on the hub; expected ORG/NAME") from None
    except (errors.HTTPError, errors.LocalTokenNotFoundError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(
            f"{place} did not take the upload (set HF_TOKEN to an account that may write): {reason:.300}"
        ) from None
    return str(done.commit_url)
