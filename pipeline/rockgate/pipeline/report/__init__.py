"""What jobs print for people: progress, tables, the report."""
