"""A shop whose rows are live: the app of the tests of live models."""
