"""How fast it is, next to its peers: ``python -m benchmarks``.

Ours, the peers and the floors run side by side in one process, in the order A B C C B A, and only ratios are
taken, round by round: absolute figures move with the machine, ratios hardly.
"""
