import { canonicalJson, sha256 } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';

interface LoopVerdict {
  verdict: 'ok' | 'warn' | 'block' | 'break';
  /** For the model: what repeats, how often, and what to do instead. Empty when `ok`. */
  message: string;
}

/** Watches the calls of one message for repetition without progress. Made anew for every message. */
export interface LoopGuard {
  /** Asked before a call. Once it said `break`, it says so for every later call. */
  check(name: string, input: Json): LoopVerdict;
  /** Told what the call gave: its output, or its error as JSON. */
  record(name: string, input: Json, result: Json): void;
}

export interface LoopGuardOptions {
  /** At which repetition the model is told. */
  warnAt?: number;
  /** From which repetition on the call is refused. */
  blockAt?: number;
  /** After how many calls without progress, of whatever tools, the whole message ends. */
  breakAt?: number;
}

interface Seen {
  /** Calls in a row that brought nothing new, those refused included. */
  repeats: number;
  /** Started and not recorded yet. */
  pending: number;
  outcome: string | undefined;
  /** How many different calls were known when this one was last recorded. */
  knownThen: number;
}

interface Step {
  call: string;
  outcome: string;
}

/** Longest run of calls that is searched for a pattern: three times three. */
const HISTORY = 9;

/**
 * A repetition is the same tool with the same arguments, whose result is the same as before, with nothing new tried in
 * between. So edit, test, edit, test goes on for as long as the tests or the edits change, and polling for as long as
 * the answer does. Two or three calls that take turns are a loop when each of them gives the same result every time.
 */
export function createLoopGuard(options: LoopGuardOptions = {}): LoopGuard {
  const { warnAt = 3, blockAt = 5, breakAt = 30 } = options;
  const calls = new Map<string, Seen>();
  const history: Step[] = [];
  let stalled = 0;
  let broken = false;

  const entryOf = (call: string): Seen => {
    const known = calls.get(call);
    if (known !== undefined) return known;
    const fresh: Seen = { repeats: 0, pending: 0, outcome: undefined, knownThen: calls.size + 1 };
    calls.set(call, fresh);
    return fresh;
  };
  /** Arguments are asked about and then recorded: the same object, which nobody changes, is hashed once. */
  let latest: { name: string; input: Json; hash: string } | undefined;
  const hashOf = (name: string, input: Json): string => {
    const isScalar = typeof input !== 'object' || input === null;
    if (isScalar || latest?.input !== input || latest.name !== name)
      latest = { name, input, hash: callHash(name, input) };
    return latest.hash;
  };
  const refuse = (seen: Seen, message: string): LoopVerdict => {
    seen.repeats += 1;
    stalled += 1;
    return { verdict: 'block', message };
  };

  return {
    check(name, input) {
      const call = hashOf(name, input);
      const seen = entryOf(call);
      if (calls.size > seen.knownThen) seen.repeats = 0;
      const nth = seen.repeats + seen.pending + 1;
      broken ||= stalled + 1 >= breakAt || nth >= breakAt;
      if (broken) return { verdict: 'break', message: breakMessage(breakAt) };
      const pattern = patternLength(history, call);
      if (pattern > 0) return refuse(seen, patternMessage(pattern));
      if (nth >= blockAt) return refuse(seen, blockMessage(name, nth));
      seen.pending += 1;
      return nth >= warnAt
        ? { verdict: 'warn', message: warnMessage(name, nth, blockAt) }
        : { verdict: 'ok', message: '' };
    },
    record(name, input, result) {
      const call = hashOf(name, input);
      const seen = calls.get(call);
      if (seen === undefined) return;
      const outcome = sha256(textOf(result));
      const progress = seen.outcome !== outcome || calls.size > seen.knownThen;
      if (!progress) stalled += 1;
      seen.repeats = progress ? 1 : seen.repeats + 1;
      seen.pending = Math.max(0, seen.pending - 1);
      seen.outcome = outcome;
      seen.knownThen = calls.size;
      history.push({ call, outcome });
      if (history.length > HISTORY) history.shift();
    },
  };
}

/** 2 or 3 when `next` would complete the third round of that many calls taking turns with unchanged results, else 0. */
function patternLength(history: readonly Step[], next: string): number {
  for (const length of [2, 3]) {
    const before = history.slice(-(3 * length - 1));
    if (before.length < 3 * length - 1) continue;
    const first = before.slice(0, length);
    if (new Set(first.map((step) => step.call)).size !== length) continue;
    const repeats = before.every((step, index) => {
      const model = first[index % length];
      return step.call === model?.call && step.outcome === model.outcome;
    });
    if (repeats && first[length - 1]?.call === next) return length;
  }
  return 0;
}

function callHash(name: string, input: Json): string {
  return sha256(`${name}|${textOf(input)}`);
}

/** Arguments a model wrote may hold what canonical JSON refuses; they are compared as they stand. */
function textOf(value: Json): string {
  try {
    return canonicalJson(value);
  } catch (error) {
    if (error instanceof RangeError) return JSON.stringify(value);
    throw error;
  }
}

function warnMessage(name: string, nth: number, blockAt: number): string {
  return `"${name}" was called ${nth} times with the same arguments, and nothing has changed; call number ${blockAt} is refused. Change the arguments or the approach.`;
}

function blockMessage(name: string, nth: number): string {
  return `"${name}" was not called: this is call number ${nth} with the same arguments, and nothing has changed. Change the arguments, use another tool, or say what blocks you.`;
}

function patternMessage(length: number): string {
  return `not called: the same ${length} calls have taken turns three times with the same results. Change the approach, or say what blocks you.`;
}

function breakMessage(count: number): string {
  return `${count} calls brought nothing new, so no further tool is called for this message. Say what you have and what blocks you.`;
}
