"""What goes wrong with weights and with the texts given to them. Every message names the fix."""

from __future__ import annotations

from serving.answer.errors import AnswerError, UnavailableError


class ModelError(UnavailableError):
    """A model cannot be had. Trying again changes nothing until someone acts."""

    code = "model_error"


class ModelNotFoundError(ModelError):
    """A model reference names nothing: no such package, folder, repository or revision."""

    code = "model_not_found"


class ModelUnusableError(ModelError):
    """The weights are there but cannot be used: pickled, incomplete, of an unknown kind."""

    code = "model_unusable"


class HubUnreachableError(ModelError):
    """The model hub did not answer, or may not be asked."""

    code = "hub_unreachable"


class DiskFullError(ModelError):
    """There is no room to prepare the weights."""

    code = "disk_full"


class EndpointError(ModelError):
    """An endpoint that serves a model refuses what it is asked."""

    code = "endpoint_refused"


class EndpointKeyError(EndpointError):
    """An endpoint does not take the key it is called with, or there is none where one should be."""

    code = "endpoint_key"


class InputTooLongError(AnswerError):
    """A query, a claim or a prompt alone exceeds what the model can read. It is refused, never cut."""

    code = "input_too_long"


class GrammarError(AnswerError):
    """The engine cannot compile the grammar of a request."""

    code = "grammar_invalid"
