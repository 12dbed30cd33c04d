"""The PostgreSQL engine. What it needs is loaded where a site uses it."""
