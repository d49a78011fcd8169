"""Data directories that nobody has opened: inspected, dumped, tried and repaired."""
