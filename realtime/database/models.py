"""No models. Django reports the end of `migrate` to apps that have this module."""
