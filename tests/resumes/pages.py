"""The pages of the office: the effect and the content of each path."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.resumes.office import Office, cookie, field, form, page, posted, see, table
from tests.site import Answer, Request, Site

ROWS = [f"Row {number:02}" for number in range(1, 48)]
AT_ONCE = 10
"""Rows of a page of the list."""

BILLS = [f"bill-{number:02}" for number in range(1, 31)]

FOUND = {"blue": ["Blue chair", "Blue desk", "Blue lamp"], "red": ["Red bell", "Red door"]}
"""The results of the searches."""

SLOW = 700
"""Milliseconds after which a page of a job shows its result."""

Handler = Callable[[Office, Request], Answer]
DROPPED = Answer(drop=True)


def build(site: Site, office: Office) -> None:
    """Have ``site`` answer for ``office``."""
    handlers: dict[str, Handler] = {
        "/": lambda _office, _request: page("Home", "<p>Nothing to do here.</p>"),
        "/about": lambda _office, _request: page("About", "<p data-testid=about>An office in the rain.</p>"),
        "/list": list_page, "/search": search, "/lookup": lookup,
        "/shop/login": shop_login, "/shop/items": shop_items, "/shop/basket": shop_basket, "/shop/checkout": shop_checkout,
        "/shop/order": shop_order, "/shop/orders": shop_orders,
        "/notes": notes, "/notes/alpha": note, "/notes/beta": note, "/notes/alpha/rename": note_rename,
        "/drafts/7": draft, "/drafts/7/file": draft_file, "/filed": filed,
        "/canvas": canvas, "/canvas/save": canvas_save, "/registry": registry,
        "/files": files, "/files/upload": files_upload,
        "/jobs": jobs, "/jobs/1": job, "/payments": payments,
        "/desk": state, "/desk/login": desk_login, "/desk/ticket": desk_ticket, "/app": app, "/app/save": app_save,
    }  # fmt: skip
    for number in range(1, 9):
        handlers[f"/shop/orders/{1000 + number}"] = shop_receipt
    for path, handler in handlers.items():
        site.answer(path, lambda request, handler=handler: handler(office, request))


# Lists and answers to forms


def list_page(_office: Office, request: Request) -> Answer:
    """Paged by a form: each page has the address of the first."""
    number = int(posted(request).get("page", "1"))
    rows = ROWS[(number - 1) * AT_ONCE : number * AT_ONCE]
    more = number * AT_ONCE < len(ROWS)
    leaf = form("/list", "Next", page=number + 1) if more else ""
    return page("List", f"<p data-testid=page>Page {number}</p>{table('rows', ([each] for each in rows))}{leaf}")


def search(_office: Office, request: Request) -> Answer:
    """A form whose answer has its own address: loaded again, it is empty."""
    ask = form("/search", "Search", field("Words", "words"))
    if request.method == "GET":
        return page("Search", ask)
    rows = FOUND.get(posted(request).get("words", ""), [])
    return page(
        "Results", f"{ask}<p data-testid=found>{len(rows)} found</p>{table('results', ([each] for each in rows))}"
    )


def lookup(_office: Office, request: Request) -> Answer:
    """A form whose answer has an address that redirects to the home page."""
    if request.method == "GET" and not request.query:
        return Answer(status=302, headers={"location": "/"})
    if request.method == "GET":
        return page("Lookup", form("/lookup", "Look up", field("Words", "words")))
    rows = FOUND.get(posted(request).get("words", ""), [])
    return page("Looked up", table("results", ([each] for each in rows)))


# The shop


def shop_login(_office: Office, request: Request) -> Answer:
    """A sign-in for this session of the browser."""
    if request.method == "POST":
        return see("/shop/items", set_cookie="shop=ada; Path=/shop")
    return page("Sign in", form("/shop/login", "Sign in", field("Name", "name")))


def signed_in(request: Request) -> bool:
    """True if the request comes from a signed-in customer."""
    return cookie(request, "shop") == "ada"


def shop_items(_office: Office, request: Request) -> Answer:
    """The articles for sale."""
    if not signed_in(request):
        return see("/shop/login")
    return page(
        "Items", "<p>Tea <span>4.00</span></p>" + form("/shop/basket", "Put tea into the basket", article="tea")
    )


def shop_basket(office: Office, request: Request) -> Answer:
    """One piece of each article at most: adding it twice is the same as once."""
    if not signed_in(request):
        return see("/shop/login")
    if request.method == "POST":
        article = posted(request)["article"]
        if article not in office.basket:
            office.basket.append(article)
        return see("/shop/basket")
    go_on = '<a href="/shop/checkout">Checkout</a>' if office.basket else "<p>Your basket is empty.</p>"
    return page("Basket", table("basket", ([each] for each in office.basket)) + go_on)


def shop_checkout(office: Office, request: Request) -> Answer:
    """The last form before the order; there is none for an empty basket."""
    if not signed_in(request):
        return see("/shop/login")
    if not office.basket:
        return see("/shop/basket")
    return page("Checkout", form("/shop/order", "Place order", field("Deliver to", "to")))


def shop_order(office: Office, request: Request) -> Answer:
    """The effect: it consumes the basket."""
    if request.method == "GET" or not office.basket:
        return see("/shop/basket")

    def carry_out() -> None:
        office.orders[str(1001 + len(office.orders))] = office.basket[0]
        office.basket.clear()

    if not office.effect("order", f"{office.basket[0]} to {posted(request).get('to')}", carry_out):
        return DROPPED
    return see(f"/shop/orders/{max(office.orders)}")


def shop_receipt(office: Office, request: Request) -> Answer:
    """The page after an order."""
    number = request.path.rpartition("/")[2]
    if not signed_in(request):
        return see("/shop/login")
    if number not in office.orders:
        return page("No such order", "", 404)
    return page("Thank you", f"<p>Order <b data-testid=number>{number}</b> of {office.orders[number]}</p>")


def shop_orders(office: Office, request: Request) -> Answer:
    """All orders."""
    if not signed_in(request):
        return see("/shop/login")
    return page("Orders", table("orders", office.orders.items()))


# The notebook and the drafts


def notes(office: Office, _request: Request) -> Answer:
    """All notes."""
    return page("Notes", "".join(f'<p><a href="/notes/{each}">{each}</a></p>' for each in office.notes))


def note(office: Office, request: Request) -> Answer:
    """One note, at the address that its name gives it."""
    name = request.path.rpartition("/")[2]
    if name not in office.notes:
        return page("There is no such note", "", 404)
    rename = form(f"/notes/{name}/rename", "Rename", field("New name", "name"))
    return page(f"Note {name}", f"<p data-testid=text>{office.notes[name]}</p>{rename}")


def note_rename(office: Office, request: Request) -> Answer:
    """The effect: the old address no longer exists."""
    name, new = request.path.split("/")[2], posted(request).get("name", "")
    if request.method == "GET" or name not in office.notes:
        return page("There is no such note", "", 404)
    if not office.effect("rename", f"{name} to {new}", lambda: office.notes.update({new: office.notes.pop(name)})):
        return DROPPED
    return see(f"/notes/{new}")


def draft(office: Office, _request: Request) -> Answer:
    """A draft that is not filed yet."""
    if "7" not in office.drafts:
        return page("There is no such draft", "", 404)
    return page("Draft 7", f"<p data-testid=draft>{office.drafts['7']}</p>" + form("/drafts/7/file", "File it away"))


def draft_file(office: Office, _request: Request) -> Answer:
    """The effect: the draft is filed, and no longer a draft."""
    if "7" not in office.drafts:
        return page("There is no such draft", "", 404)
    if not office.effect("file", "7", lambda: office.filed.update({"7": office.drafts.pop("7")})):
        return DROPPED
    return see("/filed")


def filed(office: Office, _request: Request) -> Answer:
    """The filed drafts."""
    return page("Filed", table("filed", office.filed.items()))


# State in scripts


def canvas(office: Office, _request: Request) -> Answer:
    """An editor that keeps dropped nodes in its script until it is saved."""
    return page(
        "Canvas",
        f"""<button onclick="drop('trigger')">Drop a trigger</button><button onclick="drop('timer')">Drop a timer</button>
<ul id=nodes></ul><button onclick="save()">Save</button><p data-testid=state></p>
<script>
const nodes = {json.dumps(office.canvas)};
const show = () => document.getElementById('nodes').innerHTML = nodes.map((each) => `<li class=${{each}}>${{each}}</li>`).join('');
const drop = (kind) => {{ nodes.push(kind); show(); }};
const save = async () => {{
  await fetch('/canvas/save', {{method: 'POST', body: JSON.stringify(nodes)}});
  document.querySelector('[data-testid=state]').textContent = 'Saved ' + nodes.length;
}};
show();
</script>""",
    )


def canvas_save(office: Office, request: Request) -> Answer:
    """The effect: the nodes on the canvas."""
    nodes: list[str] = json.loads(request.body)

    def carry_out() -> None:
        office.canvas = nodes

    return Answer("saved") if office.effect("save", "+".join(nodes), carry_out) else DROPPED


def app(office: Office, _request: Request) -> Answer:
    """A page with views in the URL fragment: another view loads no document, so that filters and dialogs stay."""
    return page(
        "App",
        f"""<nav><a href="#/list">List</a> <a href="#/edit">Edit</a></nav><main></main>
<dialog><p>Saved</p><button onclick="document.querySelector('dialog').close()">Close</button></dialog>
<script>
const items = {json.dumps(office.items)};
let only = false;
const save = async () => {{
  const answer = await fetch('/app/save', {{method: 'POST', body: document.querySelector('input').value}});
  Object.assign(items, await answer.json());
  document.querySelector('dialog').showModal();
}};
const show = () => {{
  const main = document.querySelector('main');
  if (location.hash === '#/edit') {{
    main.innerHTML = '<label>Item to close <input></label><button onclick="save()">Save</button>';
    return;
  }}
  const rows = Object.entries(items).filter(([, state]) => !only || state === 'open');
  main.innerHTML = '<button onclick="only = true; show()">Only open</button><table id=items><tbody>'
    + rows.map(([id, state]) => `<tr><td class=c0>${{id}}</td><td class=c1>${{state}}</td></tr>`).join('') + '</tbody></table>';
}};
addEventListener('hashchange', show);
show();
</script>""",
    )


def app_save(office: Office, request: Request) -> Answer:
    """The effect: an item is closed."""
    if not office.effect("close", request.body, lambda: office.items.update({request.body: "closed"})):
        return DROPPED
    return Answer(json.dumps(office.items))


# Effects with a question, slow effects, effects elsewhere


def registry(office: Office, request: Request) -> Answer:
    """A list of servers, and a form that adds one, also a second time."""
    if request.method == "POST":
        name = posted(request)["name"]
        return see("/registry") if office.effect("register", name, lambda: office.servers.append(name)) else DROPPED
    rows = table("servers", ([each] for each in office.servers))
    return page("Registry", rows + form("/registry", "Register", field("Server", "name")))


def files(office: Office, _request: Request) -> Answer:
    """Uploads a file when it is chosen; confirms an overwrite by a dialog of the page, or of the browser (`?ask=browser`)."""
    rows = table("files", office.files.items())
    return page(
        "Files",
        f"""<label>File <input type=file></label><button onclick="choose()">Upload</button>{rows}
<dialog><p>The file is there already.</p><button onclick="send()">Overwrite</button><button onclick="this.closest('dialog').close()">Cancel</button></dialog>
<script>
const there = {json.dumps(list(office.files))};
const asks = new URLSearchParams(location.search).get('ask');
const file = () => document.querySelector('input').files[0];
const choose = () => {{
  if (!there.includes(file().name)) return send();
  if (asks === 'browser') return confirm('Overwrite ' + file().name + '?') && send();
  document.querySelector('dialog').showModal();
}};
const send = async () => {{
  await fetch('/files/upload', {{method: 'POST', headers: {{'x-name': file().name}}, body: await file().text()}});
  location.reload();
}};
</script>""",
    )


def files_upload(office: Office, request: Request) -> Answer:
    """The effect: the file exists, whatever existed before."""
    name = request.headers["x-name"]
    fine = office.effect("upload", f"{name}: {request.body}", lambda: office.files.update({name: request.body}))
    return Answer("there") if fine else DROPPED


def jobs(office: Office, request: Request) -> Answer:
    """The jobs, and a button that starts one."""
    if request.method == "POST":
        return see("/jobs/1") if office.effect("job", "count", lambda: office.jobs.append("count")) else DROPPED
    return page("Jobs", table("jobs", ([each] for each in office.jobs)) + form("/jobs", "Start"))


def job(office: Office, _request: Request) -> Answer:
    """A page that shows its result late."""
    if not office.jobs:
        return page("There is no such job", "", 404)
    result = "<p>Finished</p>" + table("parts", (["one"], ["two"], ["three"]))
    show = f"setTimeout(() => document.querySelector('main').innerHTML = {json.dumps(result)}, {SLOW})"
    return page("Job 1", f"<main>Working</main><script>{show}</script>")


def payments(office: Office, request: Request) -> Answer:
    """Bills on three pages, changed by a form; each has its own button, and shows whether it is paid."""
    given = posted(request)
    number = int(given.get("page", "1"))
    if bill := given.get("pay"):
        if not office.effect("pay", bill, lambda: office.paid.append(bill)):
            return DROPPED
        number = BILLS.index(bill) // AT_ONCE + 1
    rows = [
        [each, "paid" if each in office.paid else "open", form("/payments", "Pay", pay=each)]
        for each in BILLS[(number - 1) * AT_ONCE : number * AT_ONCE]
    ]
    leaf = form("/payments", "Next", page=number + 1) if number * AT_ONCE < len(BILLS) else ""
    return page("Payments", f"<p data-testid=page>Page {number}</p>{table('bills', rows)}{leaf}")


def state(office: Office, request: Request) -> Answer:
    """Shows a signed-in person their tickets, and everybody else a sign-in form at the same address."""
    if cookie(request, "desk") is None:
        return page("Desk", form("/desk/login", "Sign in", field("Name", "name")))
    rows = table("tickets", ([each] for each in office.tickets))
    return page(
        "Desk", f"<p data-testid=who>Ada</p>{rows}" + form("/desk/ticket", "Open a ticket", field("Subject", "subject"))
    )


def desk_login(_office: Office, _request: Request) -> Answer:
    """Sign in, until the browser is closed."""
    return see("/desk", set_cookie="desk=ada; Path=/desk")


def desk_ticket(office: Office, request: Request) -> Answer:
    """The effect: a ticket."""
    if cookie(request, "desk") is None:
        return see("/desk")
    subject = posted(request)["subject"]
    return see("/desk") if office.effect("ticket", subject, lambda: office.tickets.append(subject)) else DROPPED
