"""The parts of the publish page.

forms          the form and its fields
reach          subscribers and refusals of the channels, before publishing
typed          declared types of the channels
threshold      the size from which a publication must be confirmed
send           publishing, with one entry in the log
positions      where publications of operators are, so that the history can name them
recent         the last publications, from the log
"""
