"""Durable publications: rows in the site's database, relayed after the commit.

    INSTALLED_APPS += ["realtime.pending"]
    publish("orders:42", data, durable=True)

models    the two tables
rows      writes rows in the caller's transaction, and shows them to operators
wake_ups  tells a relay after a commit that there is something to do
shards    takes shards of the table, so that one relay at a time works on a channel
relay     publishes rows and deletes them; one thread in every process that serves clients
bell      wakes that thread

docs/commit-to-screen.md.
"""
