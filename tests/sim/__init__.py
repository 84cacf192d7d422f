"""The embedded cluster: rules without sockets, the recorded API over HTTP, and real clients."""
