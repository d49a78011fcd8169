"""What the server tells of itself: counted in passing, put together when somebody asks."""
