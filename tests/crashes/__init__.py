"""Random workflows that die at random points and are resumed, judged by the ledger of a fake site."""
