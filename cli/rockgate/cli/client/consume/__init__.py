"""Reading topics: fetching, membership of a classic group, reading until stopped."""
