"""An app of the test site that decides what clients may do."""
