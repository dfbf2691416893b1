"""The pinned region, and who has which block of it."""
