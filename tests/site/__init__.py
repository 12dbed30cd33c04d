"""A small Django site around the service, for tests: in-process and as a server process."""
