"""What `rockgate doctor` checks before a server starts, or beside one that runs.

Each module checks one thing and returns findings; none of them changes anything.
"""
