"""Places behind the region where blocks can be kept."""
