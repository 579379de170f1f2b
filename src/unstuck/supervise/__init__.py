"""The supervisor: starts the training, keeps its clock, looks when it stands still, and says why."""
