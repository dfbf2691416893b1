"""Whether the settings of a graph make sense."""

from __future__ import annotations

from ..errors import DeclarationError, Fault, short
from ..spec import is_limit

__all__ = ["faulty_settings"]


def faulty_settings(
    name: object, limits: dict[str, object], workers: object, observers: tuple[object, ...], where: str
) -> list[Fault]:
    """What is wrong with them."""
    texts = [
        f"{key} is {value!r}: it takes seconds, 0 or more, or None"
        for key, value in limits.items()
        if not is_limit(value)
    ]
    if not isinstance(name, str) or not name:
        texts.append(f"name is {name!r}: it takes a string that is not empty")
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        texts.append(f"workers is {workers!r}: it takes a whole number, 1 or more")
    texts += [f"observer {observer!r} cannot be called" for observer in observers if not callable(observer)]
    return [Fault(DeclarationError, f"Graph ({short(where)}): {text}") for text in texts]
