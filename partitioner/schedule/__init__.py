"""What the schedule of a pipeline keeps in memory."""
