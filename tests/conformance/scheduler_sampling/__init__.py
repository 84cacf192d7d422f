"""Agreement with kube-scheduler 1.36 on how often a sampled cluster's best nodes are found."""
