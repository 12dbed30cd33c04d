"""This process among others: commands to all nodes, messages to one, surveys."""
