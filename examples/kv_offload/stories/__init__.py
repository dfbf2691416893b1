"""Two things that went wrong elsewhere, each as a program that shows it, and then how it goes here."""
