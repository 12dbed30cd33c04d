"""Durable publications: rows in the site's database, relayed after the commit.

    INSTALLED_APPS += ["realtime.pending"]
    publish("orders:42", data, durable=True)

models        the two tables
publications  a publication as a row, and back
rows          writes rows in the caller's transaction, and shows them to operators
wake_ups      tells a relay after a commit that there is something to do
tables        which databases have the tables
shards        takes shards of the table, so that one relay at a time works on a channel
reading       reads the rows that are due, whatever is in them
relay         publishes rows and deletes them; one thread in every process that serves clients
within        streams in the relay's transaction, where the engine uses the database of the rows

docs/commit-to-screen.md.
"""
