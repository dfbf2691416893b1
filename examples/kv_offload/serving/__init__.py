"""What serves prompts from the region and the tiers."""
