"""A ready site that runs the whole service: demo page, server API, operators' panel."""
