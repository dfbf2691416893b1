"""Tests of the pictures of a graph."""
