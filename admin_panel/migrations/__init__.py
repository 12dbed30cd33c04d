"""Migrations: they make no table, only the permission."""
