"""Examples that run: `python -m examples.NAME` from the top of the source tree."""
