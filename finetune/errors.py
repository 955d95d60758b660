"""What may go wrong with a job, in words that name the fix."""

from __future__ import annotations


class JobError(Exception):
    """A job cannot go on: its settings, its data or its folder. The message is for the person who started it."""
