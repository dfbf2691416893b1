"""What one resource is: name, wishes, hooks, limits, lane, file:line."""

from .door import built, context, declaration, describe, read
from .hooks import is_limit
from .values import OPTIONS, Declared, Form, Hook, Hooks, Options, Spec, Wish, seconds_of

__all__ = [
    "OPTIONS",
    "Declared",
    "Form",
    "Hook",
    "Hooks",
    "Options",
    "Spec",
    "Wish",
    "built",
    "context",
    "declaration",
    "describe",
    "is_limit",
    "read",
    "seconds_of",
]
