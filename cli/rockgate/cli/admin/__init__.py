"""Administration as values: what the command line prints and the web console shows.

Each module asks a server over its wires and returns plain typed values; nothing here prints, reads
options, or knows pages. `client` below it has the wires themselves, request by request.
"""
