"""RocketMQ's remoting wire: frames, both header encodings, messages and sans-IO connections."""
