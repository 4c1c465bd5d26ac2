"""Finding and naming elements: locators, facts of an element, rules, and a target that finds just one.

Start with ``locators.py`` (from a target to the element) and ``targets.py`` (the way back).
"""
