"""The parts of the publish page.

forms          the form and its fields
channel_names  several channel names in one text
reach          subscribers and refusals of the channels, before publishing
threshold      the size from which a publication must be confirmed
send           publishing, with an entry in the log for each channel
recent         the last publications, from the log
"""
