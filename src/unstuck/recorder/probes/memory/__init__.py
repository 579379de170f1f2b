"""What grows: containers, graphs, memory of the GPU."""
