"""RocketMQ's protocol: sessions, processors by family, connected clients, a name server."""
