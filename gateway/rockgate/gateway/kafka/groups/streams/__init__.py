"""Groups of the streams protocol (KIP-1071): the server assigns tasks, by the clients' topology."""
