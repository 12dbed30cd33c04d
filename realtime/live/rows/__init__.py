"""Live models: the rows that pages show are published as they change.

registration  model: ties a feed to a model
feeds         Feed: what is published of a row, and who may see it
channels      the channels of a row
permission    may_view as subscribe hook; invalidate
filling       the rows that a map has at first
changes       signals of models, and announce
follows       signals of rows that a row shows
batches       from the changes of a transaction to publications
rounds        whether others published rows meanwhile
sending       to the engine, or into rows
checks        system checks
"""
