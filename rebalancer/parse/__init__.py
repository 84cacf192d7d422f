"""JSON objects and bytes of the API server to values of ``model``. JSON field names stop here.

Every parser takes the bytes of one object and raises ParseError where the object is malformed, naming the field. What the
API server would reject is rejected; what it would default is defaulted.
"""
