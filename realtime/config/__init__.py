"""Options: what they are, how they are read, and where they come from."""
