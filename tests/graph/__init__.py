"""Tests of the graph as its users see it: written from what is promised, not from the code."""
