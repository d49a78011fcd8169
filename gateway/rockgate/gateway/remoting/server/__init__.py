"""RocketMQ's listeners: connections, sessions, dispatch, errors and limits."""
