"""What every part of the settings is made of: a base that refuses unknown keys, and the kinds of numbers and paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def absolute(path: Path) -> Path:
    return Path(os.path.expanduser(path)).absolute()  # Path.expanduser raises for a user it cannot find


Folder = Annotated[Path, AfterValidator(absolute)]
"""A folder on this machine; ``~`` is the user's. Absolute, since replicas run in another working directory."""


class SettingsError(ValueError):
    """A configuration that cannot run. The message names each key and what to write instead."""


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _complete_parts(cls, given: Any) -> Any:
        """A part of which some keys are written keeps its own default for the others, not its class's."""
        if not isinstance(given, dict):
            return given
        defaults = {name: field.default for name, field in cls.model_fields.items()}
        return {
            name: {**dict(defaults[name]), **part}
            if isinstance(part, dict) and isinstance(defaults.get(name), BaseModel)
            else part
            for name, part in given.items()
        }
