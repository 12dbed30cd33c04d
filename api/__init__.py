"""The HTTP API as a Django app. All the work is in `realtime.server_api`."""
