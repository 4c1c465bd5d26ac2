"""Files, locks, processes, crash points and tasks: what log and browser need of the operating system. It imports nothing of RunOps but ``nodes``."""
