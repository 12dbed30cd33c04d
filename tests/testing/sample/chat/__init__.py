"""Rooms in which members write."""
