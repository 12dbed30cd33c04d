"""Monitoring: what operators and their tools see of the running service.

table        every metric: its name, type, labels and meaning
figures      reads a node: metric → labels → value
exposition   figures as text, in two formats; needs prometheus-client
access       who may read them
health       whether a process is alive, and ready for clients
application  the paths of all of these, in front of the site
views, urls  live and ready as views of the site
"""
