"""The processors of RocketMQ's request codes, by family; `compose.remoting.table` lists them."""
