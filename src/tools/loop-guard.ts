import { canonicalJson, sha256 } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';

interface LoopVerdict {
  verdict: 'ok' | 'warn' | 'block' | 'break';
  /** The message for the model: the repeated call, its count and the remedy. Empty when `ok`. */
  message: string;
}

/** Detects repetition without progress in the calls of one message. Each message needs a new guard. */
export interface LoopGuard {
  /** Checks a call before it runs. After the first `break` every later verdict is `break`. */
  check(name: string, input: Json): LoopVerdict;
  /** Records the result of a call: its output, or its error as JSON. `changesState`: the call may have changed what other calls return. */
  record(name: string, input: Json, result: Json, changesState?: boolean): void;
}

/** Accepts every call, for calls that the agent did not choose: the tests of a forge and a verification repeat calls on purpose. */
export const NO_LOOP_GUARD: LoopGuard = {
  check: () => ({ verdict: 'ok', message: '' }),
  record: () => undefined,
};

export interface LoopGuardOptions {
  /** The number of the repetition at which the model gets a warning. */
  warnAt?: number;
  /** The number of the repetition from which the call is refused. */
  blockAt?: number;
  /** The number of calls without progress, of any tools, after which the whole message ends. */
  breakAt?: number;
}

interface CallState {
  /** Consecutive calls without a new result, refused calls included. */
  repeats: number;
  /** Calls that started and are not recorded yet. */
  pending: number;
  outcome: string | undefined;
  /** The number of distinct calls, and of calls that change state, at the time of the last record of this call. */
  distinctCalls: number;
  stateChanges: number;
  /** The call was refused. Only a change of state permits it again. */
  isBlocked: boolean;
}

interface RecordedCall {
  call: string;
  outcome: string;
}

/** Number of recent calls to search for a pattern: three rounds of three calls. */
const MAX_HISTORY = 9;

/**
 * A repetition is a call of the same tool with the same arguments and the same result, without a new call or a change of state in
 * between. So edit, test, edit, test may continue while the tests or the edits change, also when an edit is undone, and polling while the
 * result changes. Two or three alternating calls are a loop when each of them gives the same result every time. A refused call stays
 * refused until another call changes state: a new call that only reads does not permit it again.
 */
export function createLoopGuard(options: LoopGuardOptions = {}): LoopGuard {
  const { warnAt = 3, blockAt = 5, breakAt = 30 } = options;
  const calls = new Map<string, CallState>();
  const history: RecordedCall[] = [];
  let stalled = 0;
  let stateChanges = 0;
  let broken = false;

  const entryOf = (call: string): CallState => {
    const known = calls.get(call);
    if (known !== undefined) return known;
    const distinctCalls = calls.size + 1;
    const fresh = { repeats: 0, pending: 0, outcome: undefined, distinctCalls, stateChanges, isBlocked: false };
    calls.set(call, fresh);
    return fresh;
  };
  const hashOf = createCallHash();
  const refuse = (seen: CallState, message: string): LoopVerdict => {
    seen.repeats += 1;
    seen.isBlocked = true;
    stalled += 1;
    return { verdict: 'block', message };
  };

  return {
    check(name, input) {
      const call = hashOf(name, input);
      const seen = entryOf(call);
      if (stateChanges > seen.stateChanges) Object.assign(seen, { repeats: 0, isBlocked: false });
      else if (calls.size > seen.distinctCalls && !seen.isBlocked) seen.repeats = 0;
      const nth = seen.repeats + seen.pending + 1;
      broken ||= stalled + 1 >= breakAt || nth >= breakAt;
      if (broken) return { verdict: 'break', message: breakMessage(breakAt) };
      const pattern = patternLength(history, call);
      if (pattern > 0) return refuse(seen, patternMessage(pattern));
      if (nth >= blockAt || seen.isBlocked) return refuse(seen, blockMessage(name, nth));
      seen.pending += 1;
      return nth >= warnAt
        ? { verdict: 'warn', message: warnMessage(name, nth, blockAt) }
        : { verdict: 'ok', message: '' };
    },
    record(name, input, result, changesState = false) {
      const call = hashOf(name, input);
      const seen = calls.get(call);
      if (seen === undefined) return;
      const outcome = sha256(textOf(result));
      const isNew = seen.outcome !== outcome || calls.size > seen.distinctCalls;
      if (!isNew) stalled += 1;
      seen.repeats = isNew || stateChanges > seen.stateChanges ? 1 : seen.repeats + 1;
      if (changesState) stateChanges += 1;
      seen.stateChanges = stateChanges;
      seen.pending = Math.max(0, seen.pending - 1);
      seen.outcome = outcome;
      seen.distinctCalls = calls.size;
      history.push({ call, outcome });
      if (history.length > MAX_HISTORY) history.shift();
    },
  };
}

/** `check` and `record` receive the same unchanged object, so it is hashed once. */
function createCallHash(): (name: string, input: Json) => string {
  let latest: { name: string; input: Json; hash: string } | undefined;
  return (name, input) => {
    const isScalar = typeof input !== 'object' || input === null;
    if (isScalar || latest?.input !== input || latest.name !== name)
      latest = { name, input, hash: callHash(name, input) };
    return latest.hash;
  };
}

/** 2 or 3 when `next` would complete the third round of that many alternating calls with unchanged results, else 0. */
function patternLength(history: readonly RecordedCall[], next: string): number {
  for (const length of [2, 3]) {
    const recent = history.slice(-(3 * length - 1));
    if (recent.length < 3 * length - 1) continue;
    const first = recent.slice(0, length);
    if (new Set(first.map((step) => step.call)).size !== length) continue;
    const repeats = recent.every((step, index) => {
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

/** A model may write arguments that canonical JSON refuses; these are compared as plain JSON. */
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
  return `not called: the same ${length} calls have alternated three times with the same results. Change the approach, or say what blocks you.`;
}

function breakMessage(count: number): string {
  return `${count} calls gave no new result, so no further tool is called for this message. Say what you have and what blocks you.`;
}
