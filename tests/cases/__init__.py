"""Situations in which people were hurt, from public bug reports; each tested as the kind it is one of."""
