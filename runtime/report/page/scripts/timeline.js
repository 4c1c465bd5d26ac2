const TICKS = 5;

/** The working time of a run: the times between its processes take no room. */
class Clock {
  constructor(run) {
    this.spans = (run.spans || []).map(([from, to]) => [Date.parse(from), Date.parse(to)]);
    this.total = Math.max(this.spans.reduce((sum, [from, to]) => sum + Math.max(to - from, 0), 0), 1);
  }

  /** The part of the working time that had passed at a moment, from 0 to 1. */
  at(moment) {
    let passed = 0;
    for (const [from, to] of this.spans) {
      if (moment <= from) break;
      passed += Math.min(moment, to) - from;
    }
    return passed / this.total;
  }

  /** Where processes of the run ended and others resumed it. */
  gaps() {
    return this.spans.slice(1).map(([from], number) => [this.at(from), (from - this.spans[number][1]) / 1000]);
  }
}

/** The time of each attempt of steps and of all within them. */
function barsOf(tree, numbers) {
  return numbers.flatMap((number) => {
    const own = (tree.steps[number].attempts || []).map((each) => [Date.parse(each.at), (each.seconds || 0) * 1000, each.status || "open"]);
    return [...own, ...barsOf(tree, tree.children(number))];
  });
}

/** The bars of a row: a thin line from its beginning to its end, and each attempt on it. */
function barsIn(clock, tree, numbers) {
  const bars = barsOf(tree, numbers);
  if (!bars.length) return span("bars");
  const begin = Math.min(...bars.map(([at]) => at));
  const end = Math.max(...bars.map(([at, long]) => at + long));
  const isContainer = numbers.length > 1 || tree.children(numbers[0]).length > 0;
  const drawn = isContainer ? [] : bars.map(([at, long, status]) => bar(clock, at, at + long, kindOf(status)));
  return span("bars", bar(clock, begin, end, isContainer ? "whole" : "wait-line"), drawn);
}

function bar(clock, from, to, kind) {
  const element = span(`bar ${kind}`);
  element.style.setProperty("left", `${100 * clock.at(from)}%`);
  element.style.setProperty("width", `${100 * (clock.at(to) - clock.at(from))}%`);
  return element;
}

function axis(clock) {
  const ticks = Array.from({ length: TICKS }, (_, number) => {
    const tick = span("tick", duration((clock.total / 1000) * (number / (TICKS - 1))));
    tick.style.setProperty("left", `${(100 * number) / (TICKS - 1)}%`);
    return tick;
  });
  const gaps = clock.gaps().map(([at, seconds]) => {
    const gap = el("span", { class: "gap", title: `resumed after ${duration(seconds)}` }, `↷ ${duration(seconds)}`);
    gap.style.setProperty("left", `${100 * at}%`);
    return gap;
  });
  return el("div", { class: "axis", "aria-hidden": "true" }, span("bars", ticks, gaps));
}

/** The columns of the timeline's rows. */
function timeColumns(clock) {
  return (tree, numbers) => [barsIn(clock, tree, numbers), secondsOf(tree, numbers)];
}

/** How long steps took, with all within them. */
function secondsOf(tree, numbers) {
  const seconds = barsOf(tree, numbers).reduce((sum, [, long]) => sum + long / 1000, 0);
  return span("time", duration(seconds));
}
