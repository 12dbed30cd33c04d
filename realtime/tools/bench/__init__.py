"""`manage.py realtime bench`: how fast a running service is.

Connections that receive run in processes of their own. But for `command` there is only the standard
library, so that a process starts soon and spends its time on connections.

command     the sub-command
connection  one connection of the second generation of the protocol, in JSON
worker      the connections of one process
results     what connections received, counted
reference   the figures of docs/performance.md
"""
