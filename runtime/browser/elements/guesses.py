"""Guesses what an element is called that shows no text: by its attributes, then by its icon.

A guess is no name: a target by ``name`` does not find it. So each guess comes with CSS that finds its source.
"""

from __future__ import annotations

SHOWN_TEXT = r"""
  // Characters of private planes are glyphs of an icon font: no person reads them.
  const unglyphed = (text) => text.replace(/\p{Co}/gu, ' ').replace(/\s+/g, ' ').trim();
  const FONT = /\b(icons?|symbols|glyph\w*|iconfont)\b/i;
  const ICON_TEXT = 'i:not(:has(*)), mat-icon, [class*="material-icons"], [class*="material-symbols"], span[class*="icon"]:not(:has(*))';
  // An icon font draws one picture for a whole word, such as `menu`. The word is in the document, and nobody sees it.
  const ligature = (element) => {
    if (!element.matches(ICON_TEXT) || element.childElementCount || !/^\s*[a-z][a-z0-9_]{1,40}\s*$/.test(element.textContent)) return '';
    const drawn = element.localName === 'mat-icon' || /\bmaterial-(icons|symbols)/.test(element.className) || FONT.test(getComputedStyle(element).fontFamily);
    return drawn ? element.textContent.trim() : '';
  };
  const ligatures = (roots) => new Map(roots.flatMap((root) => Array.from(root.querySelectorAll(ICON_TEXT))).map((each) => [each, ligature(each)]).filter(([, word]) => word));
  // Whether a text of an element has anything that is read; `drawn` are the ligatures of the page.
  const isRead = (element, text, drawn) => {
    for (const [each, word] of drawn) if (element.contains(each)) text = text.replace(new RegExp(`(?<!\\w)${word}(?!\\w)`), ' ');
    return /[^\s\p{Co}]/u.test(text);
  };
"""
"""JavaScript: which characters and words of a document are pictures, and no text."""

GUESS = (
    SHOWN_TEXT
    + r"""
  const SAYING = ['title', 'aria-label', 'aria-description', 'aria-roledescription', 'alt', 'data-tooltip', 'data-title', 'data-original-title',
    'data-bs-original-title', 'data-bs-title', 'data-tip', 'data-tippy-content', 'data-balloon', 'data-hint', 'tooltip'];
  const HOLDS = SAYING.map((name) => `[${name}]`).join();
  // Classes of icon sets that say how an icon looks, and not which it is.
  const LOOKS = /^(solid|regular|light|thin|brands|duotone|sharp|fw|xs|sm|md|lg|xl|\d*x?l|\d+x?|spin|pulse|stack.*|inverse|rotate.*|flip.*|li|ul|border|pull.*|fixed.*|small|medium|large|only|btn|button|wrap(per)?|box|container|holder|inner|set|font|img|image|svg|text|white|black|primary|secondary|default)$/;
  const OF_ICON = /(?:^|[-_])(?:icon|icons|ico|ic|glyph)[-_]+(.+)$|^(?:fa|bi|glyphicon|mdi|ti|ri|bx|bxs|la|pi|lucide|feather|codicon|octicon|anticon|k-i|ion|icofont|dashicons|oi|typcn|uil|ph|cil|si|fi|eva|gg|i)[-_:]+(.+)$|^(.+)[-_](?:icon|ico)$/i;
  const worded = (name) => {
    const said = name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/^.*:/, '').replace(/[-_]+(o|alt|fill|filled|outlined?|solid|line|regular|bold|duotone)$/i, '')
      .replace(/[-_\s]+/g, ' ').trim().toLowerCase();
    return /\p{L}{3}/u.test(said) && said.length <= 40 && !LOOKS.test(said) ? said : '';
  };
  const quote = (value) => `"${value.replace(/["\\]/g, '\\$&')}"`;
  // What many classes of a page begin with is the name of the application.
  const prefixes = (word) => document.querySelectorAll(`[class^="${CSS.escape(word)}-"]`).length >= 20;
  const of_class = (node, element) => {
    // `ant-btn-icon` in an `ant-btn` is a part of any such button.
    const part = (name) => Array.from(element.classList).some((each) => name.startsWith(`${each}-`));
    for (const name of node.classList) {
      const found = OF_ICON.exec(name), said = found && !(found[3] && (part(name) || prefixes(found[3]))) && worded(found[1] || found[2] || found[3]);
      if (said) return [said, `.${CSS.escape(name)}`];
    }
    return null;
  };
  const of_attribute = (node) => {
    for (const name of ['data-icon', 'data-lucide', 'data-feather', 'icon', 'name']) {
      if (name === 'name' && !node.localName.includes('icon')) continue;
      const said = worded(node.getAttribute(name) || '');
      if (said) return [said, `[${name}=${quote(node.getAttribute(name))}]`];
    }
    return null;
  };
  const of_file = (node) => {
    const used = node.localName === 'use' ? node.getAttribute('href') || node.getAttribute('xlink:href') || '' : '';
    if (used.includes('#')) {
      const id = used.split('#').pop(), found = OF_ICON.exec(id), said = worded(found ? found[1] || found[2] || found[3] : id);
      return said ? [said, node.hasAttribute('href') ? `use[href$=${quote(`#${id}`)}]` : ''] : null;
    }
    if (node.localName !== 'img') return null;
    const file = (node.getAttribute('src') || '').split(/[?#]/)[0].split('/').pop(), stem = /^([A-Za-z][A-Za-z_-]{1,30})\.(svg|png|gif|webp|ico)$/.exec(file);
    const said = stem && worded(stem[1].replace(/^(icon|ico|ic)[-_]|[-_](icon|ico)$/i, ''));
    return said ? [said, `img[src$=${quote(file)}]`] : null;
  };
  // Classes that say how an element looks, or what state it is in.
  const PLAIN = /^(active|selected|hover|focus|open|closed|odd|even|first|last|flex|grid|block|inline|hidden|relative|absolute|fixed|sticky|rounded|border|shadow|card|container|wrapper|row|column|item|clearfix|(is|has|js|ui|ng|v|col|row|d|m[xytblr]?|p[xytblr]?|w|h|min|max|text|bg|cursor|overflow|flex|grid|gap|z|top|left|right|bottom|select|pointer|css|sc)-.*)$/;
  const of_own_class = (element) => {
    const name = Array.from(element.classList).find((each) => /^[A-Za-z][A-Za-z_-]{2,40}$/.test(each) && !PLAIN.test(each) && worded(each));
    return name ? [worded(name), `${element.localName}.${CSS.escape(name)}`, true] : null;
  };
  // What a person would call the element, and CSS that finds it by that; null if nothing says. `alone`: what is in it has names of its own.
  const guess = (element, alone, classed) => {
    const tag = element.localName, within = alone ? [] : Array.from(element.querySelectorAll(HOLDS)).slice(0, 20);
    const css = (node, own) => own && (node === element ? `${tag}${own.replace(/^[a-z]+(?=\[)/, '')}` : `${tag}:has(${own})`);
    for (const name of SAYING) {
      for (const node of [element, ...within]) {
        const written = node.getAttribute(name), said = unglyphed(written || '');
        if (/[\p{L}\p{N}]/u.test(said) && said.length <= 100) return [said, css(node, `[${name}=${quote(written)}]`)];
      }
    }
    const titled = element.querySelector(alone ? ':scope > title' : 'title');
    if (titled && unglyphed(titled.textContent)) return [unglyphed(titled.textContent), ''];
    const parts = alone ? [] : [element, ...Array.from(element.querySelectorAll('i, span, svg, use, img, em, b, [data-icon], [class*="icon"]')).slice(0, 12)];
    for (const node of parts) {
      const word = ligature(node);
      if (word) return [worded(word), `${tag}:has(:text-is(${quote(word)}))`];
      const found = of_class(node, element) || of_attribute(node) || of_file(node);
      if (found) return [found[0], css(node, found[1])];
    }
    return classed ? of_own_class(element) : null;
  };
"""
)
"""JavaScript: ``guess(element, alone, classed)`` is null, or what an element may be called, CSS that finds it by that (empty if none does), and true if only its class says so."""
