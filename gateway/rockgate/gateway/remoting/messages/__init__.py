"""Messages on RocketMQ's protocol: send, pull, delay, send-back, half messages and checks."""
