"""This process: its node, hub, outboxes and subscriptions, and the contract of hooks."""
