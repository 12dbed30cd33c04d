"""One client over many HTTP requests: its session, the responses, and the relay between nodes."""
