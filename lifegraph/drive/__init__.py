"""Ways to run user code: each a mailbox, a clock, and hands. No ordering, no fate and no report in here."""
