"""The loop's side of the store: long polls, answers that wait for the disk, cold reads."""
