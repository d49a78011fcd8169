"""What `rockgate doctor` looks at before a server starts, or beside one that runs.

Each module looks at one thing and returns findings; none of them changes anything.
"""
