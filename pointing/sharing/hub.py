"""Runs on the Hugging Face hub, through its own library. Nothing else of ours asks the network."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pointing.errors import Failure, Misuse, missing_extra
from pointing.generation.command import load_generator
from pointing.sharing.export import FILES, fill

if TYPE_CHECKING:
    from pointing.generation.generator import Generator


def push_to_hub(
    run: str | Path, repo_id: str, *, private: bool = False, token: str | None = None, message: str | None = None
) -> str:
    """Puts a run into a repository of the hub, OWNER/NAME, which is made if it is not there; returns its address."""
    hub = _hub()
    with TemporaryDirectory(prefix="pointing-") as temporary:
        fill(Path(run), Path(temporary), repo_id.rpartition("/")[2])
        try:
            api = hub.HfApi(token=token)
            repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
            message = message or "A model, with its card"
            done = api.upload_folder(repo_id=repo_id, folder_path=temporary, commit_message=message)
        except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
            raise Failure(f"{repo_id}: not put on the hub: {_line(error)}") from error
    return str(done)


def from_pretrained(
    name: str | Path, *, revision: str | None = None, token: str | None = None, device: str = "auto", **options: Any
) -> Generator:
    """A model of a folder, an exported file, or a repository of the hub, OWNER/NAME, ready to generate.

    More options are those of `huggingface_hub.snapshot_download`: cache_dir, local_files_only, …
    """
    if Path(name).exists():
        return load_generator(name, device)
    hub = _hub()
    try:
        folder = hub.snapshot_download(str(name), revision=revision, token=token, allow_patterns=list(FILES), **options)
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise Misuse(f"there is no such folder or file, and the hub does not give it: {_line(error)}", name) from error
    return load_generator(folder, device)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise missing_extra("huggingface_hub", "hub") from None
    return huggingface_hub
