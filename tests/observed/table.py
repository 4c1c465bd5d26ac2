"""A page with a table of 200 rows in which 1,001 elements can be acted on, and some around it."""

from __future__ import annotations

NAMES = ("Ada", "Ben", "Cleo", "Dirk", "Edda", "Finn", "Gesa")


def page(rows: int = 200) -> str:
    """The page; row N is order 1000+N, and what one can do in a row is called the same in each."""
    return f"""<!doctype html><title>Orders</title>
<header><a href=/>Shop</a><nav aria-label=Main><a href=/orders aria-current=page>Orders</a> <a href=/articles>Articles</a></nav></header>
<main><h1>All orders</h1>
<div role=alert>Three orders wait for a decision.</div>
<form role=search><label>Search <input name=q value="late"></label><button type=button>Find</button>
<label>Country <select name=country>{"".join(f"<option{' selected' if number == 70 else ''}>Country {number}</option>" for number in range(120))}</select></label>
<label>Day <input name=day aria-invalid=true aria-describedby=wrong value="31.2."></label><span id=wrong>There is no such day.</span></form>
<table><caption>Orders</caption><thead><tr><th><input type=checkbox aria-label="All orders"></th><th>Number</th><th>Customer</th><th>Total</th><th></th><th></th></tr></thead>
<tbody>{"".join(_row(number) for number in range(1000, 1000 + rows))}</tbody></table>
<nav aria-label=Pages><a href="?page=1">1</a> <a href="?page=2">2</a> <a href="?page=2">Next</a></nav></main>
<footer><a href=/imprint>Imprint</a></footer>"""


def _row(number: int) -> str:
    customer = f"{NAMES[number % 7]} {NAMES[number // 7 % 7]}son"
    return (
        f"<tr><td><input type=checkbox aria-label=Choose></td><td><a href=/orders/{number}>{number}</a></td><td>{customer}</td>"
        f"<td>{number * 7 % 900}.{number % 100:02}</td>"
        f"<td><button onclick=\"this.closest('tr').cells[2].textContent = 'done'\">Edit</button> <button>Pay</button></td>"
        "<td><button>Delete</button></td></tr>"
    )
