"""Weights of other programs into models of this package, and back."""
