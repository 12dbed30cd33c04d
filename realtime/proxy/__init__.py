"""HTTP endpoints of the site that decide in place of hooks."""
