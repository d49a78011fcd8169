"""Who looks, and at what: connections of a user, their history, and logins."""
