"""A ready site that runs the whole service: demo page, HTTP API, panel."""
