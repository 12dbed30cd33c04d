"""The PostgreSQL engine. `engine.factory` loads it for the sites that use it."""
