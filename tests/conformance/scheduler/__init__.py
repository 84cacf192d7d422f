"""Agreement with kube-scheduler 1.36 on where one more pod goes."""
