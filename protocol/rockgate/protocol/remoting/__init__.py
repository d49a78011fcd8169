"""RocketMQ's remoting wire: commands, typed headers, messages and sans-IO connections."""
