"""An app that listens to the signals of the service, and publishes in transactions."""
