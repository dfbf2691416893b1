"""How fast it is, beside bare system calls and beside vLLM's file tier, in one run."""
