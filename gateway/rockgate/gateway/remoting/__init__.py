"""RocketMQ's wire: remoting sessions, processors by family, who is connected, and a name server."""
