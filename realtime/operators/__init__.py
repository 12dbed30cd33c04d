"""What operators see of nodes, from outside. A node serves without it.

`observer` is what a node calls; `questions` travel between nodes, `service_activity` and
`following` ask them.
"""
