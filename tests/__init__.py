"""The tests of lifegraph."""
