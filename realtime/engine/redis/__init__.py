"""The engine of many processes: streams, presence and nodes in Redis, and the channel layer."""
