"""One connection: its session (pure), its commands, its end."""
