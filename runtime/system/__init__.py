"""Files, locks, processes, crash points, tasks and kinds of browsers: what log and browser need of the operating system. It imports nothing of RunOps but ``nodes``."""
