"""What a person called an element in the document, and which elements are rows and cards."""

from __future__ import annotations

NAMING = r"""
  // A class that a person wrote: words, and neither the first nor the last says a state. A program makes letters at random: capitals in
  // odd places, digits, no vowels, often behind a prefix of its own.
  const STATE = /^(active|selected|checked|disabled|enabled|hover|focus|focused|visible|hidden|open|opened|closed|expanded|collapsed|loading|loaded|error|invalid|valid|dirty|touched|empty|current|pressed|odd|even|first|last)$/i;
  const MADE = /^(sc|css|jss|svelte|styled|emotion)-[^-_]*$|^css-var/;
  const wordsOf = (name) => name.split(/[-_]+|(?=[A-Z])/).filter(Boolean);
  const spoken = (name, word) => /[aeiouy]/i.test(word) ? !/[^aeiouy]{5}/i.test(word) : word.length < 4 && (name === name.toLowerCase() || /^(svg|btn|img|txt|tbl|grp|mdc|mdl)$/i.test(word));
  const plain = (name) => {
    if (!/^[A-Za-z][A-Za-z_-]{1,60}$/.test(name) || MADE.test(name)) return false;
    const words = wordsOf(name), mixed = name !== name.toLowerCase();
    if (/^(is|has|js)$/.test(words[0]) || STATE.test(words[0]) || STATE.test(words[words.length - 1])) return false;
    return words.every((each) => spoken(name, each)) && (!mixed || (name.split(/[-_]+/).every((each) => /^([A-Z]?[a-z]{2,})?([A-Z][a-z]{2,})*$/.test(each)) && words.some((each) => each.length > 3)));
  };
  const classes = (node) => Array.from(node.classList).filter(plain);
  // An attribute that a person wrote to say what an element is: not one of a framework, none that gives its present state, and no number.
  const NOISE = /^data-(v-|react|ng-|svelte|ember|radix|headlessui|turbo|hx-|bs-|reach|styled|emotion|testid$|id$|uid$|key$|index$|state|status$|active$|open$|selected$|checked$|value$|count$|text$|title$|label$|toggle$|target$|original|loaded|href$|url$|src$|date|time|shrink|side$|align$|orientation|slot$|grace)/;
  const data = (node) => Array.from(node.attributes)
    .filter(({name, value}) => /^data-[a-z][a-z-]*$/.test(name) && !NOISE.test(name) && /^[A-Za-z][A-Za-z_.:-]{1,40}$/.test(value) && !/^(true|false|null|none|on|off|yes|no)$/i.test(value))
    .map(({name, value}) => `${node.localName}[${name}="${value}"]`);
  // A card that stands alone has no others to be known by, but often a class that says so: `work-pool-card`, `MuiCard-root`.
  const isCardByName = (node) => classes(node).some((each) => /^(card|tile|item|entry|row)s?$/i.test(wordsOf(each.replace(/-root$/, '')).pop() || ''));
"""
"""JavaScript: classes and attributes that a person gave an element; whether a class calls it a card."""
