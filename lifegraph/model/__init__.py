"""The members of a graph with their edges, and the plan that is made of them."""

from .export import exported
from .model import Model
from .resolving import GRAPH, Filling

__all__ = ["GRAPH", "Filling", "Model", "exported"]
