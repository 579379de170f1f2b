"""Looking at a process tree from outside: who is there, what each thread waits for, where its Python code is."""
