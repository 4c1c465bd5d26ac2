"""Pages as component libraries write them: classes with capitals or prefixes, generated classes, switches and icons without names."""

from __future__ import annotations

POOLS = [("printers", "process", "3"), ("scanners", "docker", "8"), ("plotters", "kubernetes", "5")]
ORDERS = [("1001", "Ada Okafor", "open"), ("1002", "Ben Stern", "open"), ("1003", "Cleo Marsh", "paid")]
MORE = ("cutters", "vertex", "9"), ("1044", "Dora Finch", "late")

_HOME = "M10 20v-6h4v6h5v-8h3L12 3 2 12h3v8z"
_DOTS = "M12 8c1.1 0 2-.9 2-2s-.9-2-2-2-2 .9-2 2 .9 2 2 2z"


def page(library: str, *, more: bool = False) -> str:
    """One of the ``LIBRARIES`` with three cards and three rows; with ``more``, another one above them."""
    write, title = LIBRARIES[library], library.capitalize()
    pools, orders = ([MORE[0], *POOLS], [MORE[1], *ORDERS]) if more else (POOLS, ORDERS)
    style = "<style>svg { width: 9px; height: 9px } .MuiSwitch-input { opacity: 0 }</style>"
    return f"<!doctype html><title>{title}</title>{style}<div id=root>{write(pools, orders)}</div>"


def _mui(pools: list[tuple[str, str, str]], orders: list[tuple[str, str, str]]) -> str:
    def icon(path: str) -> str:
        return f'<button class="MuiButtonBase-root MuiIconButton-root css-1yxmbwk" type=button><svg class="MuiSvgIcon-root css-vubbuv" viewBox="0 0 24 24" aria-hidden=true><path d="{path}"></path></svg></button>'

    switch = '<span class="MuiSwitch-root css-ecvcn9"><span class="MuiButtonBase-root MuiSwitch-switchBase Mui-checked css-1uf4bbi"><input class="PrivateSwitchBase-input MuiSwitch-input css-1m9pwf3" type=checkbox></span></span>'
    cards = "".join(
        f'<div class="MuiGrid-root MuiGrid-item css-1udb513"><div class="MuiPaper-root MuiCard-root css-s18byi"><div class="MuiCardContent-root css-1qw96cp"><a class="MuiLink-root css-z4r21k" href="/pool/{name}">{name}</a><div class="MuiChip-root css-fdmwml"><span class="MuiChip-label css-1pjtbja">{kind}</span></div>{switch}{icon(_DOTS)}<div><span class="MuiTypography-root MuiTypography-caption css-1v2gfp5">Limit</span><p class="MuiTypography-root css-68o8xu">{limit}</p></div></div><div class="MuiCardActions-root css-ny0n9o"><button class="MuiButton-root css-1rtnrqa" type=button>Edit</button></div></div></div>'
        for name, kind, limit in pools
    )
    cell = '<td class="MuiTableCell-root css-q34dxg">'
    rows = "".join(
        f'<tr class="MuiTableRow-root css-1gqug66">{cell}{number}{cell}{name}{cell}{state}{cell}{icon(_HOME)}{icon(_DOTS)}'
        for number, name, state in orders
    )
    return f"""<header class="MuiAppBar-root css-mui-4am">{icon(_HOME)}<span>Console</span></header><div class="MuiGrid-container css-isbt42">{cards}</div>
<table class="MuiTable-root css-1owb465"><tbody class="MuiTableBody-root">{rows}</table>
<div class="MuiPaper-root css-9xk"><div><span class="css-1v2gfp5">Slots</span><p class="css-68o8xu">42</p></div><div><span>Notify</span>{switch}</div></div>"""


def _ant(pools: list[tuple[str, str, str]], orders: list[tuple[str, str, str]]) -> str:
    def icon(path: str) -> str:
        return f'<button type=button class="ant-btn css-mncuj7 ant-btn-icon-only"><span class="ant-btn-icon"><span class=anticon role=img><svg viewBox="0 0 24 24"><path d="{path}"></path></svg></span></span></button>'

    switch = '<button type=button role=switch aria-checked=true class="ant-switch css-mncuj7 ant-switch-checked"><div class="ant-switch-handle"></div></button>'
    cards = "".join(
        f'<div class="ant-col ant-col-6 css-mncuj7"><div class="ant-card ant-card-bordered css-mncuj7"><div class="ant-card-head"><div class="ant-card-head-title"><a href="/pool/{name}">{name}</a></div><div class="ant-card-extra">{icon(_DOTS)}</div></div><div class="ant-card-body">{switch}<span class="ant-tag css-mncuj7">{kind}</span><div class="ant-statistic"><div class="ant-statistic-title">Limit</div><div class="ant-statistic-content"><span class="ant-statistic-content-value">{limit}</span></div></div><button type=button class="ant-btn css-mncuj7"><span>Edit</span></button></div></div></div>'
        for name, kind, limit in pools
    )
    rows = "".join(
        f'<tr class="ant-table-row" data-row-key={number}><td class="ant-table-cell">{number}<td class="ant-table-cell">{name}<td class="ant-table-cell"><span class="ant-tag css-mncuj7">{state}</span><td class="ant-table-cell">{icon(_HOME)}{icon(_DOTS)}'
        for number, name, state in orders
    )
    return f"""<div class="ant-row css-mncuj7">{cards}</div><table><tbody class="ant-table-tbody">{rows}</table>
<table><tr class="ant-descriptions-row"><th class="ant-descriptions-item-label"><span>Slots</span><td class="ant-descriptions-item-content"><span>42</span><th class="ant-descriptions-item-label"><span>Owner</span><td class="ant-descriptions-item-content"><span>Ada</span></table>"""


def _hashed(pools: list[tuple[str, str, str]], _orders: list[tuple[str, str, str]]) -> str:
    cards = "".join(
        f'<div class="sc-fzXfMv dKmPqR"><div class="sc-xyzAbc css-9ab2c"><a href="/pool/{name}">{name}</a><div><label class="_tog12x"><input type=checkbox role=switch></label><button class="css-1x2y3z"><svg><path d="{_DOTS}"></path></svg></button></div></div><div><span class="bdVaJa">Limit</span> <span>{limit}</span></div></div>'
        for name, _kind, limit in pools
    )
    return f'<div class="kXyZaB"><a href=/><svg></svg></a></div><div class="_a1b2c">{cards}</div><p>Slots</p><output>42</output>'


LIBRARIES = {"mui": _mui, "ant": _ant, "hashed": _hashed}

ALONE = """<!doctype html><title>Pools</title><header class="bar"><div><a href=/pools>All pools</a></div><fieldset><label role=switch tabindex=0 aria-checked=true class="p-toggle__control"><i style="display: inline-block; width: 9px; height: 9px"></i></label></fieldset></header>
<div class="p-virtual-scroller"><div class="p-card work-pool-card"><div class="p-content"><div class="work-pool-card__header"><div class="work-pool-card__name"><a href="/pool/printers">printers</a></div>
<fieldset class="p-toggle"><label class="p-toggle__control" tabindex=0 role=switch aria-checked=false><i style="display: inline-block; width: 9px; height: 9px"></i></label></fieldset></div><span>Limit 3</span></div></div></div>
<label><input type=radio name=kind> Process Execute flow runs as subprocesses on a worker. Works well for local execution when first getting started.</label>
<label><input type=radio name=kind> Process pool of Execute flow runs as subprocesses on a worker. Works well for local execution when first started.</label>
<div class="p-key-value"><div>Status</div><div><span class="p-tag"><svg width=9 height=9 role=img aria-label=Dot></svg><span>Paused</span></span></div></div><div class="p-key-value"><div>Type</div><div>process</div></div>
<form><label>Country <select name=country><option>France<option>Italy</select></label><div class="x1"><select><option>Tea<option>Cake</select> <input name=amount></div></form>"""
"""One card alone, a banner, radio buttons with long names, pairs of labels and values, and a field beside a select."""
