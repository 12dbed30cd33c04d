"""The test kit for sites, used as a site uses it."""
