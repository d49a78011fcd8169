"""The JSON bodies of requests and answers, by family. `javajson` reads and writes them."""
