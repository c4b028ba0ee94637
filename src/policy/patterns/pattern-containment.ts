import { matchesSubject, type Pattern, type Segment } from './pattern.ts';
import { parseSubject, ROOT } from './pattern-subjects.ts';

/**
 * Decides whether the patterns `outer` together match everything that `inner` matches (language inclusion, not text comparison).
 * The automaton of `inner` runs against the subset automaton of all outers. The alphabet is the characters that the patterns name,
 * and OTHER for every other character. When the search exceeds its limits, the result is false.
 *
 * Example: tools `csv_*` and `*_rows` as outers, `csv_a*` as inner. The machine of `csv_a*` is `c s v _ a STAR END`, that of `csv_*`
 * is `c s v _ STAR END`. After `csv_a` inner is in states {10, 12} (before STAR, and past it before END) and `csv_*` in {8, 10}; both
 * keep these states for every further character, and both accept after END. No reachable word is accepted by inner and rejected by all
 * outers, so the result is true. For inner `*` the word `x END` is such a counterexample, so the result is false.
 */
export function includes(outer: readonly Pattern[], inner: Pattern, budget = newSearchBudget()): boolean {
  const outers = outer.filter((pattern) => pattern.kind === inner.kind && pattern.address === inner.address);
  if (outers.some((pattern) => isEqual(pattern, inner))) return true;
  // The only subject of a pattern without wildcards: one match is much cheaper than a search.
  const only = inner.literal === undefined ? undefined : parseSubject(inner.kind, inner.literal);
  if (only !== undefined) return outers.some((pattern) => matchesSubject(pattern, only));
  const innerMachine = compile(inner);
  const outerMachines = outers.map(compile);
  const rooted = inner.kind === 'path';
  // First each outer alone: this is cheaper, and further outers cannot exhaust the budget for it.
  if (outerMachines.some((machine) => search(innerMachine, [machine], rooted, budget))) return true;
  return outerMachines.length !== 1 && search(innerMachine, outerMachines, rooted, budget);
}

/** Limits of the search: stored configurations, and stepped states. The second bounds the time for any number of outers. */
const MAX_CONFIGURATIONS = 20_000;
const MAX_STEPS = 3_000_000;

/** The steps that are left to one comparison, or together to all comparisons of one object. */
export interface SearchBudget {
  steps: number;
}

export function newSearchBudget(): SearchBudget {
  return { steps: MAX_STEPS };
}

/** Symbols: the end of a segment, the root of absolute paths, and any character that no pattern names. */
const END = -1;
const ROOT_SYMBOL = -2;
const OTHER = -3;

/** Tokens that are not symbols: a star inside a segment, and `**`. */
const STAR = -4;
const GLOB = -5;

type Machine = readonly number[];

/** A word is a sequence of segments, each followed by END. State 2·p is before token p; state 2·p+1 is inside a segment matched by the `**` at p. */
function compile(pattern: Pattern): Machine {
  return pattern.segments.flatMap((segment) => tokensOf(segment, pattern.kind === 'path'));
}

function tokensOf(segment: Segment, rooted: boolean): number[] {
  if (segment === '**') return [GLOB];
  if (rooted && segment.length === 1 && segment[0] === ROOT) return [ROOT_SYMBOL, END];
  const tokens: number[] = [];
  segment.forEach((piece, index) => {
    if (index > 0) tokens.push(STAR);
    for (let i = 0; i < piece.length; i += 1) tokens.push(piece.charCodeAt(i));
  });
  return [...tokens, END];
}

function alphabetOf(machines: readonly Machine[], rooted: boolean): readonly number[] {
  const characters = new Set(machines.flat().filter((token) => token >= 0));
  return [...characters, OTHER, END, ...(rooted ? [ROOT_SYMBOL] : [])];
}

/** The epsilon closure: all states reachable without a symbol, sorted and unique. */
function epsilonClosure(machine: Machine, states: readonly number[]): number[] {
  const reached = new Set(states);
  for (const state of reached) {
    const token = machine[state >> 1];
    if (state % 2 === 0 && (token === STAR || token === GLOB)) reached.add(state + 2);
  }
  return [...reached].sort((a, b) => a - b);
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
  return next.length === 0 ? next : epsilonClosure(machine, next);
}

/** The symbols that lead on from the states: outside of a wildcard only those that the pattern names there. */
function symbolsAfter(machine: Machine, states: readonly number[], alphabet: readonly number[]): readonly number[] {
  const tokens = states.map((state) => machine[state >> 1]);
  if (tokens.some((token) => token === STAR || token === GLOB)) return alphabet;
  return [...new Set(tokens)].filter((token) => token !== undefined);
}

function accepts(machine: Machine, states: readonly number[]): boolean {
  return states.includes(machine.length * 2);
}

/** Position in the word. It excludes empty segments, and a root that is not the first symbol. */
type WordPosition = 'start' | 'boundary' | 'inside' | 'after-root';

function positionAfter(position: WordPosition, symbol: number): WordPosition | undefined {
  if (symbol === ROOT_SYMBOL) return position === 'start' ? 'after-root' : undefined;
  if (symbol === END) return position === 'inside' || position === 'after-root' ? 'boundary' : undefined;
  return position === 'after-root' ? undefined : 'inside';
}

interface Configuration {
  inner: readonly number[];
  outers: readonly (readonly number[])[];
  position: WordPosition;
}

/** Searches for a counterexample: a word that inner accepts and all outers reject. Paths may contain the root and include the empty word, which is `.`. */
function search(inner: Machine, outers: readonly Machine[], rooted: boolean, budget: SearchBudget): boolean {
  const alphabet = alphabetOf([inner, ...outers], rooted);
  const start: Configuration = {
    inner: epsilonClosure(inner, [0]),
    outers: outers.map((machine) => epsilonClosure(machine, [0])),
    position: 'start',
  };
  const seen = new Set([keyOf(start)]);
  const stack = [start];
  for (let current = stack.pop(); current !== undefined; current = stack.pop()) {
    if (isCounterexample(inner, outers, current, rooted)) return false;
    const symbols = symbolsAfter(inner, current.inner, alphabet);
    budget.steps -= symbols.length * sizeOf(current);
    if (budget.steps < 0) return false;
    for (const symbol of symbols) {
      const next = advance(inner, outers, current, symbol);
      if (next === undefined) continue;
      const key = keyOf(next);
      if (seen.has(key)) continue;
      if (seen.size >= MAX_CONFIGURATIONS) return false;
      seen.add(key);
      stack.push(next);
    }
  }
  return true;
}

function isCounterexample(
  inner: Machine,
  outers: readonly Machine[],
  cursor: Configuration,
  emptyAllowed: boolean,
): boolean {
  const isComplete = cursor.position === 'boundary' || (cursor.position === 'start' && emptyAllowed);
  if (!isComplete || !accepts(inner, cursor.inner)) return false;
  return !outers.some((machine, index) => accepts(machine, cursor.outers[index] ?? []));
}

function advance(
  inner: Machine,
  outers: readonly Machine[],
  from: Configuration,
  symbol: number,
): Configuration | undefined {
  const position = positionAfter(from.position, symbol);
  if (position === undefined) return undefined;
  const next = step(inner, from.inner, symbol);
  if (next.length === 0) return undefined;
  return {
    inner: next,
    outers: outers.map((machine, index) => step(machine, from.outers[index] ?? [], symbol)),
    position,
  };
}

function sizeOf({ inner, outers }: Configuration): number {
  return inner.length + outers.reduce((sum, states) => sum + states.length + 1, 0);
}

function keyOf({ inner, outers, position }: Configuration): string {
  return `${position}|${inner.join()}|${outers.map((states) => states.join()).join(';')}`;
}

function isEqual(a: Pattern, b: Pattern): boolean {
  return a.text === b.text || (a.literal !== undefined && a.literal === b.literal);
}
