"""What a rockgate is asked over RocketMQ's wire: delays, half messages, dead letters."""
