"""Limits: what one node takes from clients, from their users, and from all of them together."""
