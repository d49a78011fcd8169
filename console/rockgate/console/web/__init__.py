"""What stands between browsers and pages: hosts, origins, headers, logins."""
