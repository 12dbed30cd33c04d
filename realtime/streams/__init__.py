"""Order and completeness of what a channel's stream holds, and recovery."""
