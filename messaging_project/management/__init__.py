"""Management commands of the ready site."""
