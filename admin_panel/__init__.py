"""The operators' publish panel, a section of the Django admin."""
