"""Template tags of the panel's pages."""
