"""An app of the test site with a page that holds the client module for tests."""
