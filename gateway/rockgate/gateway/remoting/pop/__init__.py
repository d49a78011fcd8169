"""Pop consumption: messages acquired for a time, and acknowledged one by one."""
