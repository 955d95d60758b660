"""Fetches a model from a hub: the one place of this package that may touch the network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

from models.errors import HubUnreachableError, ModelNotFoundError, ModelUnusableError

# Weights, configuration and tokenizer; never pickles, never code.
_WANTED = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja"]
_UNWANTED = ["onnx/*", "openvino/*", "*.onnx.json"]


def download(name: str, *, progress: Callable[[str], None]) -> Path:
    """The local snapshot of ``ORG/NAME[@REVISION]``, fetched into the hub's own cache when it is not there.

    Honours ``HF_HUB_OFFLINE``, ``HF_TOKEN``, ``HF_HOME`` and ``HF_ENDPOINT``.
    """
    repository, _, revision = name.partition("@")
    progress(f"Fetching {name} from the model hub")
    try:
        folder = snapshot_download(
            repository, revision=revision or None, allow_patterns=_WANTED, ignore_patterns=_UNWANTED
        )
    except GatedRepoError as error:
        raise ModelUnusableError(f"hub:{name} asks for consent: accept its terms, then set HF_TOKEN.") from error
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise ModelNotFoundError(f"The hub has no {name!r}: check ORG/NAME and the revision after @.") from error
    except Exception as error:  # the hub's client raises its own, the HTTP client's and the system's errors
        raise HubUnreachableError(
            f"hub:{name} could not be fetched ({type(error).__name__}): check the network, unset HF_HUB_OFFLINE, or "
            "copy the model here and give path:FOLDER."
        ) from error
    return Path(folder)
