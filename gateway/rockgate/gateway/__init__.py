"""The server: listeners, request handlers of both protocols, coordinators, command line."""
