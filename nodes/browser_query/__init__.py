"""``browser_query``: reads the page. Each query is a class, so that each accepts only its own fields."""

from nodes.browser_query.ai_extract import AiExtract
from nodes.browser_query.base import BrowserQuery as BrowserQuery
from nodes.browser_query.elements import Attribute, Count, Exists, State, Text, Value
from nodes.browser_query.page import Assert, Observation, Title, Url
from nodes.browser_query.rows import Extract, Table

VARIANTS = (Extract, Table, Text, Value, Attribute, State, Exists, Count, Url, Title, Observation, Assert, AiExtract)
"""The queries, selected by ``query``."""
