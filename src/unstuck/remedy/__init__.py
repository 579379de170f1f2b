"""What makes a run better once the cause is known. Nothing here is loaded unless it is asked for."""
