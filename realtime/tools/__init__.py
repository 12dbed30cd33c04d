"""Tools of operators: the sub-commands of `manage.py realtime`, one module for each group.

commands       the table of all of them

base           the types of a sub-command and its answer; layout of text
tokens         gentoken, checktoken
configuration  checkconfig, genconfig
calls          the methods of the server API, in this process, through the engine or over HTTP
openapi        openapi: the HTTP API as an OpenAPI document
init/          init: adds the service to the files of a site
typed/         schema, types: the typed channels as documents
pending        pending: rows of durable publications
bench/         bench: how fast a running service is
top            top: the busiest nodes, channels and namespaces
tail           tail: publications, or the frames of a user
admin_log      entries in the admin's log
terminal       what a command that goes on does with a screen, or a pipe
doctor/        doctor: checks settings, a running service and its engine
remote         HTTP requests to a running service
websocket      a WebSocket connection to a running service
"""
