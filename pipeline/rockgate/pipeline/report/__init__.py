"""What jobs tell people: progress, tables, the report."""
