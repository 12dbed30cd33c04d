"""The site and the PostgreSQL engine in one database: its tables, and positions in snapshots.

    INSTALLED_APPS += ["realtime.database"]

creating   what follows `migrate`: no migration does it, for a site may choose this engine after its
           migrations, and a new version of this package changes functions
checks     warns of tables that are missing, or that another version created
snapshots  positions of channels as a transaction of the site sees them

docs/postgresql.md.
"""
