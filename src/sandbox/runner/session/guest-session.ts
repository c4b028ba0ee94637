/** The bootstrap of the isolate of a session. The text of these functions runs in the guest; see ../guest.ts. */
import { addCrypto, buildBridge, buildHasher, type PostToRunner } from '../guest-host.ts';
import {
  fixBufferSizes,
  hideFunctionSource,
  type Primordials,
  removeUnsafeGlobals,
  takePrimordials,
} from '../guest-language.ts';
import { buildEncoder } from '../guest-result.ts';
import { type GuestClock, replaceClock, replaceTemporalClock, seedRandomness } from '../guest-time.ts';
import { buildUndeclaredUse } from '../guest-undeclared.ts';
import { COMMON_FUNCTIONS, describe, guestProgram } from '../guest.ts';
import { addConsole, addContext, addMemory, addTimers } from './guest-context.ts';

/**
 * Executes code as the body of an async function and posts how it ended. Each posted kind has the number of the run, because a run
 * that was given up can continue in a later one.
 */
function buildExecution(own: Primordials, post: PostToRunner, AsyncFunction: unknown) {
  const encode = buildEncoder(own);
  const fail = (kind: string, run: string, error: unknown): void => {
    const [text, stack] = describe(own, error);
    post(`${kind}/${run}`, text, stack);
  };
  return async (run: string, code: string): Promise<void> => {
    let body: () => unknown;
    try {
      body = own.construct(AsyncFunction, [`${code}\n//# sourceURL=code.js`]) as () => unknown;
    } catch (error) {
      fail('syntax', run, error);
      return;
    }
    let value: unknown;
    try {
      value = await own.apply(body, undefined, []);
    } catch (error) {
      fail('threw', run, error);
      return;
    }
    let text = '';
    try {
      if (value !== undefined) text = encode(value);
    } catch (error) {
      fail('invalid', run, error);
      return;
    }
    post(`value/${run}`, text, '');
  };
}

/** Adds time, randomness and hashes, which all come from the run. Returns the function that starts a run at a time. */
function addRunState(
  own: Primordials,
  post: PostToRunner,
  time: { now: number; start: number },
): (now: number) => void {
  const clock: GuestClock = { now: () => time.now, start: () => time.start };
  replaceClock(own, clock);
  replaceTemporalClock(own, clock, 'Temporal');
  const reseed = seedRandomness(own, () => post('seed', '', ''));
  addCrypto(own, post, { hashing: true, random: true });
  return (now) => {
    time.start = now;
    reseed();
  };
}

/** Runs in the guest. Returns the entry function. */
function installSession(
  post: PostToRunner,
  _apis: string,
  addWebGlobals: (own: Primordials, post: PostToRunner) => void,
) {
  const own = takePrimordials();
  const AsyncFunction = (Object.getPrototypeOf(async function () {}) as { constructor: unknown }).constructor;
  removeUnsafeGlobals(own);
  fixBufferSizes(own);
  addWebGlobals(own, post);
  const bridge = buildBridge(own, post);
  const time = { now: 0, start: 0 };
  const startRun = addRunState(own, post, time);
  const report = addConsole(own, post);
  addContext(own, post, bridge);
  const memory = addMemory(own, post);
  const cancelTimers = addTimers(own, bridge, report);
  const execute = buildExecution(own, post, AsyncFunction);
  hideFunctionSource(own);
  return (operation: string, first: string, second: string, third: string, now: string): void => {
    time.now = own.parse(now) as number;
    if (operation === 'deliver') bridge.deliver(first, second === 'ok', third);
    else if (operation === 'restore') memory.restore(first);
    else if (operation === 'snapshot') memory.snapshot();
    else {
      startRun(time.now);
      bridge.reset();
      cancelTimers();
      void execute(first, second);
    }
  };
}

/** The program of a session; see `guestProgram`. */
export function sessionSource(): string {
  const functions = [
    ...COMMON_FUNCTIONS,
    buildUndeclaredUse,
    seedRandomness,
    addCrypto,
    buildHasher,
    addContext,
    addMemory,
    addConsole,
    addTimers,
    buildExecution,
    addRunState,
    installSession,
  ];
  return guestProgram(functions, installSession);
}
