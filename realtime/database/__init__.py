"""The tables of the PostgreSQL engine, created and changed by `migrate`.

    INSTALLED_APPS += ["realtime.database"]

No migration does it, but what follows each `migrate`: a site may choose this engine after its
migrations, and a new version of this package changes functions. docs/postgresql.md.
"""
