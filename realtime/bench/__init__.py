"""What `manage.py realtime bench` runs in processes of its own: connections that receive.

Only the standard library, so that a process starts soon and spends its time on connections.

connection  one connection of the second generation of the protocol, in JSON
worker      the connections of one process
results     what connections received, counted
reference   the figures of docs/performance.md
"""
