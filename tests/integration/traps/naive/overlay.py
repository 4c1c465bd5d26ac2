"""Send the money; `force` because the error called the button covered."""

import sys

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    page = playwright.chromium.launch(executable_path=sys.argv[2]).new_page()
    page.set_default_timeout(3000)
    page.goto(sys.argv[1])
    page.fill("[name=amount]", "75")
    page.click("text=Send", force=True)
