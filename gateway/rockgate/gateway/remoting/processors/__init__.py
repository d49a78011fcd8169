"""The processors of RocketMQ's request codes, by family; `compose.remoting_table` lists them."""
