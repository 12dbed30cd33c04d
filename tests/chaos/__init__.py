"""Servers, Redis and connections are cut, killed and frozen while publications come."""
