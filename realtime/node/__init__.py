"""This process: its node, hub, feeds, outboxes and subscriptions, and the contract of hooks."""
