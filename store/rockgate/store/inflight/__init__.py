"""Messages in flight: acquired by members of a group for a time, and acknowledged one by one."""
