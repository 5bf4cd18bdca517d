"""Uploads a folder to a data set on the Hugging Face hub with ``huggingface_hub``; ``HF_TOKEN`` names the account."""

from __future__ import annotations

from pathlib import Path

from guieval.errors import UsageError


def upload(folder: Path, repository: str, *, public: bool = False, message: str) -> str:
    """Upload a folder as one commit, and create the data set, private unless ``public``, if there is none; the commit's URL.

    Raises :class:`UsageError` if the hub refuses or cannot be reached.
    """
    try:
        from huggingface_hub import HfApi, errors
    except ImportError:
        raise UsageError("uploads need the package huggingface_hub: pip install 'guieval[hub]'") from None
    api = HfApi()
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
