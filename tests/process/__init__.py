"""Tests of a process's life, in child processes of every supported Python: signals, interrupts, exit, threads, fork."""
