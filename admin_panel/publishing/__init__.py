"""The form of publishing and what it is made of."""
