"""Features of the cluster: which exist, at which levels they are, and what a level switches off."""
