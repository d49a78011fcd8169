"""The pages, one module for each or one for a few that belong together."""
