"""A lake: the tables of a database as Delta tables, in a folder or an object store.

Nothing is imported here: a command that uses no lake does not pay for it.
"""
