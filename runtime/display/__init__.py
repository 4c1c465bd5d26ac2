"""What people see of a run while it goes on. Four displays stand behind one small interface: tree, plain, quiet, and none for programs."""
