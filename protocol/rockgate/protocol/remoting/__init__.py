"""RocketMQ's remoting protocol: commands, typed headers, messages and sans-IO connections."""
