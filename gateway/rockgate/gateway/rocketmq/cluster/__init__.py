"""All that has a socket: brokers and name servers of the cluster."""
