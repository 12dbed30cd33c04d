"""Tokens: verified and signed with any configuration, without Django."""
