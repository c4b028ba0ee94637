/**
 * What the code of a session finds besides the language: `ctx`, `memory`, `console` and timers. The text of these functions runs in
 * the guest; see ../guest.ts for the rules that they must follow.
 */
import type { HostBridge, PostToRunner } from '../guest-host.ts';
import { defineHidden, type Primordials } from '../guest-language.ts';
import { buildEncoder } from '../guest-result.ts';
import { describe } from '../guest.ts';

/** Defines `ctx`, which no code can change, and `target`, which explains that it does not exist here. */
export function addContext(own: Primordials, post: PostToRunner, bridge: HostBridge): void {
  const encode = buildEncoder(own);
  const { freeze } = Object;
  const RealError = Error;
  const manager = freeze({
    invoke: async (name: unknown, input?: unknown) => {
      // Awaited here, because returning the promise would call its `then`, which code can replace.
      const value = await bridge.send(own.text(name), encode(input === undefined ? {} : input, 'arguments'));
      return value;
    },
    finish: (value?: unknown) => {
      post('finished', encode(value === undefined ? null : value, 'the value'), '');
    },
  });
  const next = (): never => {
    throw new RealError('this agent serves no tool, so there is no next one; call tools with ctx.manager.invoke()');
  };
  const constant = (name: string, value: object): void => {
    own.define(own.global, name, { value: freeze(value), enumerable: true, writable: false, configurable: false });
  };
  constant('ctx', { manager });
  constant('target', { manager: freeze({ next }) });
}

export interface GuestMemory {
  /** Replaces `memory`. */
  restore(text: string): void;
  /** Posts each member, or why JSON cannot hold it. */
  snapshot(): void;
}

/** Defines `memory`. Code may assign another object to it. */
export function addMemory(own: Primordials, post: PostToRunner): GuestMemory {
  const encode = buildEncoder(own);
  const { isArray } = Array;
  let memory = own.parse('{}') as Record<string, unknown>;
  own.define(own.global, 'memory', {
    configurable: false,
    enumerable: true,
    get: () => memory,
    set(value: unknown) {
      if (typeof value !== 'object' || value === null || isArray(value)) {
        throw new TypeError('memory is an object; store the value as a member of it');
      }
      memory = value as Record<string, unknown>;
    },
  });
  const postMember = (name: string): void => {
    let text: string | undefined;
    try {
      const value = memory[name];
      if (value === undefined) return;
      text = encode(value, 'it');
    } catch (error) {
      post('omitted', name, describe(own, error)[0]);
      return;
    }
    post('member', name, text);
  };
  return {
    restore(text) {
      memory = own.parse(text) as Record<string, unknown>;
    },
    snapshot() {
      const names = own.keys(memory);
      for (let index = 0; index < names.length; index += 1) postMember(names[index] as string);
    },
  };
}

/** Defines a console that posts its lines. */
export function addConsole(own: Primordials, post: PostToRunner): (level: string, value: unknown) => void {
  const show = (value: unknown): string => {
    if (typeof value === 'string') return value;
    const [text, stack] = describe(own, value);
    if (stack !== '' || typeof value !== 'object' || value === null) return text;
    try {
      return own.stringify(value) ?? text;
    } catch {
      return text;
    }
  };
  const write =
    (level: string) =>
    (...parts: unknown[]): void => {
      let line = '';
      for (let index = 0; index < parts.length; index += 1) line += `${index === 0 ? '' : ' '}${show(parts[index])}`;
      post('log', level, line);
    };
  const { global } = own;
  const console = global['console'] as object;
  const plain = write('');
  const levels = { log: plain, info: plain, debug: plain, dir: plain, table: plain };
  const names = own.keys(levels);
  for (let index = 0; index < names.length; index += 1) defineHidden(own, console, names[index] as string, plain);
  defineHidden(own, console, 'warn', write('warn'));
  defineHidden(own, console, 'error', write('error'));
  return (level, value) => post('log', level, show(value));
}

/** Defines timers, each of them a call of the host. Returns the function that cancels all of them. */
export function addTimers(
  own: Primordials,
  bridge: HostBridge,
  report: (level: string, value: unknown) => void,
): () => void {
  const { create } = Object;
  let active = create(null) as Record<string, boolean>;
  let last = 0;
  const { Number: toNumber } = globalThis;
  const toMilliseconds = (delay: unknown): number => {
    const value = toNumber(delay);
    return value >= 1 && value <= 2_147_483_647 ? value - (value % 1) : 1;
  };
  const run = async (id: string, repeats: boolean, delay: unknown, callback: () => unknown): Promise<void> => {
    const input = `{"milliseconds":${toMilliseconds(delay)}}`;
    const isActive = async (): Promise<boolean> => {
      await bridge.send('setTimeout', input);
      return active[id] === true;
    };
    while (await isActive()) {
      if (!repeats) delete active[id];
      callback();
      if (!repeats) return;
    }
  };
  const start =
    (repeats: boolean) =>
    (callback: unknown, delay?: unknown, ...args: unknown[]): number => {
      if (typeof callback !== 'function') throw new TypeError('the callback of a timer is a function');
      last += 1;
      const id = own.text(last);
      active[id] = true;
      const call = (): unknown => own.apply(callback as () => unknown, undefined, args);
      void (async () => {
        try {
          await run(id, repeats, delay, call);
        } catch (error) {
          report('error', error);
        }
      })();
      return last;
    };
  const clear = (id: unknown): void => {
    if (typeof id === 'number') delete active[own.text(id)];
  };
  defineHidden(own, own.global, 'setTimeout', start(false));
  defineHidden(own, own.global, 'setInterval', start(true));
  defineHidden(own, own.global, 'clearTimeout', clear);
  defineHidden(own, own.global, 'clearInterval', clear);
  return () => {
    active = create(null) as Record<string, boolean>;
  };
}
