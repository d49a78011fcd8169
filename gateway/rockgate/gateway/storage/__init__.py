"""The event loop's side of the store: long polls, responses that wait for the disk, cold reads."""
