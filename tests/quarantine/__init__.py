"""Tests that nothing held is released by any path, in child interpreters of every supported Python."""
