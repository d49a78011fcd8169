"""Files of jobs, wherever Spark can reach them."""
