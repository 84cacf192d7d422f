"""The API server's language: reaching it, watching it, evicting, leases and Events.

Enters: bytes from the API server. Leaves: parsed values (``rebalancer.model``) and answers. Only here are HTTP statuses
turned into exceptions, and only here is the client library imported. What a change means is the cache's business.
"""
