"""When each user was online last: an optional app, because it needs a table.

    INSTALLED_APPS += ["realtime.online", "realtime.online.seen"]

models   the table: user → when
writer   writes who went offline, once a minute, by one node of the service
"""
