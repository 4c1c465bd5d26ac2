"""``browser_query``: reads the page, or a mailbox. Each query is a class, so that each accepts only its own fields."""

from nodes.browser_query import reads
from nodes.browser_query.ai_extract import AiExtract
from nodes.browser_query.mail import Mail
from nodes.browser_query.reads import BrowserQuery as BrowserQuery
from nodes.browser_query.rows import Extract, Table

VARIANTS = (
    *(Extract, Table, reads.Text, reads.Value, reads.Attribute, reads.Box, reads.State, reads.Exists, reads.Count),
    *(reads.Url, reads.Title, reads.Observation, reads.Assert, AiExtract, Mail),
)
"""The queries, selected by ``query``."""
