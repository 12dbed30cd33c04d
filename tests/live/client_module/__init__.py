"""The client module in a real browser."""
