"""Tokens verified and signed, with any configuration. Nothing here knows Django."""
