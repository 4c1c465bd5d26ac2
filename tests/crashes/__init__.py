"""Random workflows that die at random points and go on, judged by the ledger of a fake site."""
