"""Topics on RocketMQ's protocol, and the broker that is registered with name servers."""
