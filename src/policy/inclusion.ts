import type { Pattern, Segment } from './patterns.ts';
import { ROOT } from './subjects.ts';

/**
 * Decides whether everything `inner` stands for is covered by one or several of `outer`, by language and not by text:
 * inner runs as an automaton against the subset automaton of all outers, over the characters they name and one more that
 * stands for every other. Above the bound on states the answer is no.
 */
export function includes(outer: readonly Pattern[], inner: Pattern): boolean {
  const rivals = outer.filter((pattern) => pattern.kind === inner.kind && pattern.address === inner.address);
  if (rivals.some((pattern) => isEqual(pattern, inner))) return true;
  const own = compile(inner);
  const machines = rivals.map(compile);
  const budget = { steps: MOST_STEPS };
  const rooted = inner.kind === 'path';
  // One at a time first: what one pattern covers stays covered, however many others stand beside it.
  if (machines.some((machine) => search(own, [machine], rooted, budget))) return true;
  return machines.length !== 1 && search(own, machines, rooted, budget);
}

/** Configurations kept, and states stepped, before giving up. The second bounds the time whatever the number of outers. */
const MOST_CONFIGURATIONS = 20_000;
const MOST_STEPS = 3_000_000;

/** End of a segment, the root of absolute paths, and any character no pattern names. */
const END = -1;
const ROOT_SYMBOL = -2;
const OTHER = -3;

/** Tokens that are no symbols: a star inside a segment, and `**`. */
const STAR = -4;
const GLOB = -5;

type Machine = readonly number[];

/** A word is its segments, each closed by END. State 2·p stands before token p; 2·p+1 stands inside a segment that `**` swallows. */
function compile(pattern: Pattern): Machine {
  return pattern.segments.flatMap((segment) => tokensOf(segment, pattern.kind === 'path'));
}

function tokensOf(segment: Segment, rooted: boolean): number[] {
  if (segment === '**') return [GLOB];
  if (rooted && segment.length === 1 && segment[0] === ROOT) return [ROOT_SYMBOL, END];
  const tokens: number[] = [];
  segment.forEach((piece, index) => {
    if (index > 0) tokens.push(STAR);
    for (let at = 0; at < piece.length; at += 1) tokens.push(piece.charCodeAt(at));
  });
  return [...tokens, END];
}

function alphabetOf(machines: readonly Machine[], rooted: boolean): readonly number[] {
  const characters = new Set(machines.flat().filter((token) => token >= 0));
  return [...characters, OTHER, END, ...(rooted ? [ROOT_SYMBOL] : [])];
}

/** All states reachable without a symbol, sorted, once each. */
function closed(machine: Machine, states: readonly number[]): number[] {
  const found = new Set(states);
  for (const state of found) {
    const token = machine[state >> 1];
    if (state % 2 === 0 && (token === STAR || token === GLOB)) found.add(state + 2);
  }
  return [...found].sort((a, b) => a - b);
}

function step(machine: Machine, states: readonly number[], symbol: number): number[] {
  const next: number[] = [];
  for (const state of states) {
    const token = machine[state >> 1];
    if (token === GLOB) {
      if (symbol !== END) next.push(state | 1);
      else if (state % 2 === 1) next.push(state - 1);
    } else if (token === STAR) {
      if (symbol !== END && symbol !== ROOT_SYMBOL) next.push(state);
    } else if (token === symbol) {
      next.push(state + 2);
    }
  }
  return next.length === 0 ? next : closed(machine, next);
}

function accepts(machine: Machine, states: readonly number[]): boolean {
  return states.includes(machine.length * 2);
}

/** Where the word stands, since no subject has an empty segment, and the root comes first and alone. */
type Place = 'start' | 'boundary' | 'inside' | 'after-root';

function placeAfter(place: Place, symbol: number): Place | undefined {
  if (symbol === ROOT_SYMBOL) return place === 'start' ? 'after-root' : undefined;
  if (symbol === END) return place === 'inside' || place === 'after-root' ? 'boundary' : undefined;
  return place === 'after-root' ? undefined : 'inside';
}

interface Configuration {
  own: readonly number[];
  rivals: readonly (readonly number[])[];
  place: Place;
}

/** Looks for one word of inner that no outer takes. Paths are rooted, and know the empty word: it is `.`. */
function search(own: Machine, rivals: readonly Machine[], rooted: boolean, budget: { steps: number }): boolean {
  const alphabet = alphabetOf([own, ...rivals], rooted);
  const start: Configuration = {
    own: closed(own, [0]),
    rivals: rivals.map((machine) => closed(machine, [0])),
    place: 'start',
  };
  const seen = new Set([keyOf(start)]);
  const open = [start];
  for (let current = open.pop(); current !== undefined; current = open.pop()) {
    if (refutes(own, rivals, current, rooted)) return false;
    budget.steps -= alphabet.length * sizeOf(current);
    if (budget.steps < 0) return false;
    for (const symbol of alphabet) {
      const next = advance(own, rivals, current, symbol);
      if (next === undefined) continue;
      const key = keyOf(next);
      if (seen.has(key)) continue;
      if (seen.size >= MOST_CONFIGURATIONS) return false;
      seen.add(key);
      open.push(next);
    }
  }
  return true;
}

function refutes(own: Machine, rivals: readonly Machine[], at: Configuration, emptyAllowed: boolean): boolean {
  const whole = at.place === 'boundary' || (at.place === 'start' && emptyAllowed);
  if (!whole || !accepts(own, at.own)) return false;
  return !rivals.some((machine, index) => accepts(machine, at.rivals[index] ?? []));
}

function advance(
  own: Machine,
  rivals: readonly Machine[],
  from: Configuration,
  symbol: number,
): Configuration | undefined {
  const place = placeAfter(from.place, symbol);
  if (place === undefined) return undefined;
  const next = step(own, from.own, symbol);
  if (next.length === 0) return undefined;
  return { own: next, rivals: rivals.map((machine, index) => step(machine, from.rivals[index] ?? [], symbol)), place };
}

function sizeOf({ own, rivals }: Configuration): number {
  return own.length + rivals.reduce((sum, states) => sum + states.length + 1, 0);
}

function keyOf({ own, rivals, place }: Configuration): string {
  return `${place}|${own.join()}|${rivals.map((states) => states.join()).join(';')}`;
}

function isEqual(a: Pattern, b: Pattern): boolean {
  return a.text === b.text || (a.literal !== undefined && a.literal === b.literal);
}
