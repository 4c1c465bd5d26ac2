"""Pages with what has no role: palettes, drawings, icons, parts that scroll. On each, `data-can` states what a person makes of an element.

It is a role of an observation or a state in brackets, and after a bar the words by which a person knows the element; a question mark before
them means that the page does not say them. No part of RunOps reads this attribute.
"""

from __future__ import annotations

PALETTE = """<!doctype html><title>Flows</title>
<style>
  .node { cursor: move; width: 120px; height: 24px } .node i { font-family: Icons; font-style: normal }
  .tab:hover .grip { cursor: grab } .space { width: 300px; height: 150px; border: 1px solid } .split { cursor: col-resize; width: 6px; height: 60px }
  .bin:hover { cursor: pointer } .bin { width: 40px; height: 40px }
</style>
<h1>Flows</h1>
<form><input type="hidden" name="matches"><input type="hidden" name="className"></form>
<aside><h2>Palette</h2>
  <div class="node" data-can="draggable|inject"><i>\U000f0134</i> inject</div>
  <div class="node" data-can="draggable|debug"><i>\uf188</i> debug</div>
  <div draggable="true" data-can="draggable|Picture"><img alt="Picture" width=40 height=40 src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></div>
  <div class="ui-draggable" data-can="draggable|switch">switch</div>
  <ul><li draggable="true" style="cursor: grab" data-can="(draggable)|first rule">first rule</li><li draggable="true" data-can="(draggable)|second rule">second rule</li></ul>
  <p>Tags: <span draggable="true" data-can="draggable|urgent">urgent</span> <span draggable="true" data-can="draggable|later">later</span></p>
  <div class="tab"><span class="grip" style="display:block" data-can="draggable|Flow 1">Flow 1</span></div>
  <div><div><div draggable="true" data-can="draggable|wrapped">wrapped</div></div></div>
  <table><tr><td><div draggable="true" data-can="draggable|in a cell">in a cell</div><td>other</table>
</aside>
<div class="split" data-can="draggable|?split"></div>
<div class="space" aria-label="Workspace" ondragover="event.preventDefault()" ondrop="this.textContent = event.dataTransfer.getData('text')" data-can="droppable|Workspace">
  <p>Drop nodes here</p><button data-can="button|Deploy">Deploy</button></div>
<div class="bin" title="Bin" onmouseup="document.title = 'binned'" data-can="clickable|Bin"></div>"""

EDITOR = """<!doctype html><title>Drawing</title>
<style>svg { cursor: crosshair } .shape { cursor: move } .handle-north { cursor: ns-resize } .pin:hover { cursor: pointer }</style>
<h1>Drawing</h1>
<button data-can="button|Rectangle">Rectangle</button>
<svg width="400" height="240" aria-label="Sheet" data-can="img|Sheet">
  <g class="shape" data-can="draggable|House"><rect x="10" y="10" width="80" height="60" fill="tan" /><text x="20" y="40">House</text></g>
  <g class="shape" data-can="draggable|Tree in the garden"><title>Tree in the garden</title><circle cx="150" cy="40" r="30" fill="green" /></g>
  <circle class="handle-north" cx="50" cy="10" r="5" data-can="draggable|?handle north" />
  <g role="button" tabindex="0" aria-label="Add a door" data-can="button|Add a door"><rect x="200" y="10" width="20" height="20" /></g>
  <rect class="pin" x="250" y="10" width="20" height="20" data-can="clickable|?pin" />
  <path class="wire" d="M90,40 C100,80 110,0 120,40" stroke="black" fill="none" pointer-events="stroke" data-can="clickable|?wire" />
  <g onclick="document.title = 'shop'" data-can="clickable|Shop"><rect x="300" y="10" width="60" height="40" fill="red" /><text x="305" y="30">Shop</text></g>
  <text x="10" y="200" pointer-events="none">Scale 1:100</text>
</svg>"""

TOOLBAR = """<!doctype html><title>Tools</title>
<style>.fa, .bi, .codicon { font-family: 'Some Icons'; font-style: normal; display: inline-block; width: 16px; height: 16px } .material-icons { font-family: 'Material Icons' }
  .fa-print::before { content: "\\f02f" } .press { cursor: pointer; width: 24px; height: 24px }</style>
<h1>Tools</h1>
<div role="toolbar" aria-label="Text">
  <button data-can="button|?trash"><i class="fa fa-fw fa-trash-o"></i></button>
  <button data-can="button|?print"><i class="fa fa-print"></i></button>
  <button data-can="button|?pencil square"><i class="bi bi-pencil-square"></i></button>
  <button data-can="button|?menu open"><span class="material-icons">menu_open</span></button>
  <button data-can="button|Delete"><span class="material-icons">delete</span> Delete</button>
  <button data-can="button|?search"><span><i class="material-icons">search</i></span></button>
  <button class="icon-plus" data-can="button|?plus"></button>
  <button data-can="button|?zoom in"><svg width="16" height="16"><use href="#icon-zoom-in"></use></svg></button>
  <button data-can="button|?undo"><img src="/icons/undo.svg" width="16" height="16"></button>
  <button data-tooltip="Align left" data-can="button|?Align left"><i class="fa fa-bars"></i></button>
  <button data-bs-original-title="Bold" data-can="button|?Bold">\ue0b0</button>
  <button aria-description="Underline" data-can="button|?Underline">\U0010ff01</button>
  <button aria-description="Cut" data-tooltip="not this" data-can="button|?Cut"><i class="fa fa-scissors"></i></button>
  <button title="Redo" data-tooltip="not this" data-can="button|Redo"><i class="fa fa-repeat"></i></button>
  <button data-can="button|Save">\uf0c7 Save</button>
  <div class="press" data-can="clickable|?copy"><span class="codicon codicon-copy"></span></div>
  <div class="press" data-title="Paste" data-can="clickable|?Paste"></div>
  <button data-can="button|?arrow down"><svg data-icon="arrow-down" width="16" height="16"><path d="M0,0 L8,16 L16,0 Z" /></svg></button>
  <a href="/help" data-can="link|?question circle"><i class="bi bi-question-circle-fill"></i></a>
  <button class="btn btn-sm" data-can="button|"></button>
  <button class="btn" data-can="button| "><i class="p-icon"></i></button>
  <input type="search" aria-label="Find" placeholder="A word" data-can="searchbox|A word">
</div>"""

CANVAS = """<!doctype html><title>Plan</title>
<style>.paint { cursor: crosshair }</style>
<h1>Plan</h1>
<p>Ground floor</p>
<canvas class="paint" width="400" height="300" data-can="canvas|Ground floor"></canvas>
<p>The sum is drawn below.</p>
<canvas aria-label="Sum" width="200" height="100" data-can="canvas|Sum"></canvas>
<canvas id="hidden" width="90" height="90" hidden></canvas>
<div class="pane" style="cursor: grab; width: 320px; height: 200px" data-can="draggable|?pane"><canvas width="300" height="150" data-can="canvas|?map" class="map"></canvas></div>
<label>Zoom <input type="range" data-can="slider|Zoom"></label>"""

SCROLLED = (
    """<!doctype html><title>Rooms</title>
<style>.box { overflow: auto; height: 100px; width: 200px } .fits { overflow: auto } .cut { overflow: hidden; height: 30px } .wide { overflow-x: scroll; width: 150px }</style>
<h1>Rooms</h1>
<div class="box" id="rooms" aria-label="All rooms" data-can="scrollable|All rooms"><ul>"""
    + "".join(f"<li>Room {number} is {'free' if number % 2 else 'taken'}" for number in range(1, 31))
    + """</ul></div>
<ul class="box" id="guests" data-can="list (scrollable|">"""
    + "".join(f'<li><a href="/guest/{number}">Guest {number}</a>' for number in range(1, 21))
    + """</ul>
<div class="box" contenteditable data-can="editable|a b c d e f">a <br>b <br>c <br>d <br>e <br>f</div>
<div class="box" tabindex="0" title="Log" data-can="scrollable|Log"><p>one</p><p>two</p><p>three</p><p>four</p></div>
<div class="fits"><p>All of this is seen.</p></div><div class="cut"><p>A</p><p>B</p><p>C</p></div>
<div class="wide" aria-label="Days" data-can="scrollable|Days"><table><tr>"""
    + "".join(f"<td>Day {number}" for number in range(1, 15))
    + "</table></div><textarea rows=2>1\n2\n3\n4\n5\n6</textarea>"
)

DIAGRAM = """<!doctype html><title>Process</title>
<style>.step { cursor: pointer }</style>
<h1>Process</h1>
<svg width="500" height="200">
  <title>Order process</title>
  <g class="step" data-can="clickable|Order comes in"><rect width="100" height="40" fill="#eee" /><text x="5" y="20">Order <tspan>comes</tspan> in</text></g>
  <g class="step" data-can="clickable|Check credit"><rect x="150" width="100" height="40" fill="#eee" /><text x="155" y="15">Check</text><text x="155" y="30">credit</text></g>
  <g tabindex="0" data-can="clickable|Ship"><ellipse cx="350" cy="20" rx="50" ry="20" fill="#eee" /><text x="330" y="25">Ship</text></g>
  <g><rect y="100" width="100" height="40" fill="#ddd" /><text x="5" y="120">Refuse</text></g>
  <a href="/manual" data-can="link|Manual"><text x="400" y="150">Manual</text></a>
  <path d="M100,20 L150,20" stroke="black" />
</svg>"""

PAGES = {
    "palette": PALETTE,
    "editor": EDITOR,
    "toolbar": TOOLBAR,
    "canvas": CANVAS,
    "scrolled": SCROLLED,
    "diagram": DIAGRAM,
}
