"""SQL over values: a statement that is known to read only its tables, carried out by DuckDB in a process of its own."""
