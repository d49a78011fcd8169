"""Reading topics: fetching, membership of a classic group, reading until told to stop."""
