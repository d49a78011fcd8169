"""RocketMQ's door: remoting sessions, processors by family, who is connected, and a name server."""
