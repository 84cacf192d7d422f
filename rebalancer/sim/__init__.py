"""The embedded cluster: a Kubernetes API server's rules in memory, with small controllers, a scheduler and kubelets around it.

What enters: requests over HTTP on loopback (``server``), or calls on the rules (``registry``), which need no socket.
What leaves: the answers and watch events that a real API server would give.
``cluster.EmbeddedCluster`` puts the parts together; ``store`` holds the state and its history; what a request means is in
``registry`` and the modules named after the rules (``validation``, ``admission``, ``eviction``, ``patch``).
"""
