"""What a command line cannot do, and says so in one paragraph."""

from __future__ import annotations

__all__ = ["WrongUse"]


class WrongUse(Exception):
    """The command cannot be carried out; the message is for people."""
