"""Who a client is and what it may do, for both wires: TLS, users, credentials, grants, audit."""
