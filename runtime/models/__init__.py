"""Everything around a request to a model but the client itself: what is asked of whom, for how much, and what is kept of it.

A *request* is one question with everything that belongs to it, an *exchange* is a request with its whole terminal response
(``exchange``). Before a request is sent its tokens are estimated (``tokens``, ``estimates``) and what it may cost must fit
what is left of each budget (``budgets``, ``prices``); after it the account learns what it did cost. Nothing in here knows the
client: ``runtime.models.client.client`` does.
"""
