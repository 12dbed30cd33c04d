"""The measures. Each takes a `Run` and adds samples to its results."""
