"""What every client needs: connections, name servers, routes, heartbeats, brokers' requests."""
