"""Topics of the cluster, and the tables that number their partitions."""
