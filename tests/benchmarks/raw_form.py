"""The form, filled by a raw Playwright script as the baseline for the engine. It locates elements as the workflow does."""

from playwright.async_api import Page

from workflows.shop import form


async def fill_form(page: Page, url: str) -> str:
    """Fill the shop's form of 50 fields, send it, and return the address of its record."""
    await page.goto(f"{url}/form")
    for field in form.FIELDS:
        match field.kind:
            case "text":
                await page.get_by_label(field.label).fill(f"{field.label} 1")
            case "select":
                await page.get_by_label(field.label).select_option(field.options[-1])
            case "checkbox":
                await page.get_by_label(field.label).check()
            case "radio":
                await page.get_by_label(field.options[-1]).check()
            case "read":
                assert await page.get_by_test_id(field.name).inner_text() == field.options[0]
            case "submit":
                await page.get_by_role("button", name=field.label).click()
                await page.wait_for_url("**/form/record/*")
    return page.url
