"""Random workflows that die at random points and continue, judged by the ledger of a fake site."""
