/**
 * The first code of every isolate: it closes what guest code must not have and opens the few functions a job declares.
 * These functions are never called here. Their text is, in the guest, in one strict scope of its own; so they may use
 * each other and nothing else of their modules. What they need of the language they take before guest code can change
 * it. None of this is a boundary: it gives clean answers early. The process is what holds.
 */
import type { HostApi } from '../port.ts';
import { type Bridge, buildBridge, openCrypto, openFetch, openFiles, type Post } from './guest-host.ts';
import { closeDoors, fixBuffers, hide, type Primordials, takePrimordials } from './guest-language.ts';
import { stopFormatting, stopRandomness, stopTime } from './guest-time.ts';

/** What was thrown, in words; it may be anything, and reading it may run guest code. */
function describe(own: Primordials, thrown: unknown): [text: string, stack: string] {
  try {
    if (typeof thrown !== 'object' || thrown === null) return [own.slice(own.text(thrown), 4096), ''];
    const { name, message, stack } = thrown as { name: unknown; message: unknown; stack: unknown };
    const title = name === undefined ? 'Error' : own.slice(own.text(name), 256);
    const text = message === undefined || message === '' ? title : `${title}: ${own.slice(own.text(message), 3840)}`;
    return [text, typeof stack === 'string' ? own.slice(stack, 2048) : ''];
  } catch {
    return ['something that cannot be read', ''];
  }
}

/** JSON text of a result. What JSON would silently change into something else is refused: a lost value is a wrong answer. */
function encode(own: Primordials, value: unknown): string {
  const text = own.stringify(value);
  if (text === undefined) throw new TypeError(`${typeof value} is not a JSON value; return null for nothing`);
  if (!own.includes(text, 'null') && !own.includes(text, '{}')) return text;
  const lost = [Map, Set, WeakMap, WeakSet, Promise, RegExp];
  return own.stringify(value, (key, member) => {
    const where = key === '' ? 'the result' : `member ${own.stringify(own.slice(key, 64))}`;
    if (typeof member === 'number' && (member !== member || member === Infinity || member === -Infinity)) {
      throw new TypeError(`${where} is ${own.text(member)}, which is not a JSON value`);
    }
    if (typeof member === 'object' && member !== null) {
      for (let index = 0; index < lost.length; index += 1) {
        const kind = lost[index] as { prototype: object; name: string };
        if (member instanceof (kind as unknown as ObjectConstructor)) {
          throw new TypeError(`${where} is a ${kind.name}, which is not a JSON value; convert it first`);
        }
      }
    }
    return member;
  }) as string;
}

/** The runner's handle on the guest: `start` once, then `deliver` for each answer of the host. */
function buildEntry(own: Primordials, post: Post, bridge: Bridge) {
  const threw = (kind: string, error: unknown): void => {
    const [text, stack] = describe(own, error);
    post(kind, text, stack);
  };
  const finish = (value: unknown): void => {
    let text: string;
    try {
      text = encode(own, value);
    } catch (error) {
      threw('invalid', error);
      return;
    }
    post('value', text, '');
  };
  const finishLater = async (value: unknown): Promise<void> => {
    let settled: unknown;
    try {
      settled = await value;
    } catch (error) {
      threw('threw', error);
      return;
    }
    finish(settled);
  };
  const pick =
    '\n;typeof execute === "function" ? execute : typeof run === "function" ? run : undefined\n//# sourceURL=tool.js';
  const start = (source: string, input: string): void => {
    let entry: unknown;
    try {
      entry = own.evaluate(source + pick);
    } catch (error) {
      threw(error instanceof SyntaxError ? 'syntax' : 'threw', error);
      return;
    }
    if (typeof entry !== 'function') {
      post('no-entry', '', '');
      return;
    }
    try {
      const value = (entry as (input: unknown) => unknown)(own.parse(input));
      if (typeof value === 'object' && value !== null) void finishLater(value);
      else finish(value);
    } catch (error) {
      threw('threw', error);
    }
  };
  return (operation: string, first: string, second: string, third: string): void => {
    if (operation === 'deliver') bridge.deliver(first, second === 'ok', third);
    else start(first, second);
  };
}

interface Opening {
  declared: (api: HostApi) => boolean;
  own: Primordials;
  bridge: Bridge;
  post: Post;
  epoch: number;
}

/** Runs in the guest. The functions named here are in its scope only when they are needed; see guestSource. */
function openDeclared({ declared, own, bridge, post, epoch }: Opening): void {
  if (!declared('clock')) stopTime(own, epoch);
  if (!declared('random')) stopRandomness(own);
  if (declared('fetch')) openFetch(own, bridge);
  if (declared('fs.readFile')) openFiles(own, bridge);
  if (declared('crypto')) openCrypto(own, post, declared('random'));
  const now = declared('clock') ? Date.now : () => epoch;
  const timeOrigin = now();
  hide(own, own.global, 'performance', { now: () => now() - timeOrigin, timeOrigin });
}

/** Runs in the guest. `apis` is the declared names between bars: `|fetch|clock|`. */
function installGuest(post: Post, epoch: number, apis: string) {
  const own = takePrimordials();
  closeDoors(own);
  fixBuffers(own);
  const bridge = buildBridge(own, post);
  openDeclared({ declared: (api) => own.includes(apis, `|${api}|`), own, bridge, post, epoch });
  return buildEntry(own, post, bridge);
}

type Part = (...args: never[]) => unknown;

const PARTS: readonly Part[] = [
  takePrimordials,
  hide,
  closeDoors,
  fixBuffers,
  buildBridge,
  describe,
  encode,
  buildEntry,
  openDeclared,
  installGuest,
];

/** What `Date.now()` says inside a tool that did not declare `clock`: 2026-01-01T00:00:00Z. */
const EPOCH = 1_767_225_600_000;

/**
 * Body of a function that takes the way out as `$0` and the declared names as `$1`, and returns the entry. It is
 * compiled for every call, so it holds what the job needs, and each function in brackets, which compiles it at once.
 */
export function guestSource(apis: readonly HostApi[]): string {
  const parts = [...PARTS];
  if (!apis.includes('clock')) parts.push(stopTime, stopFormatting);
  if (!apis.includes('random')) parts.push(stopRandomness);
  if (apis.includes('fetch')) parts.push(openFetch);
  if (apis.includes('fs.readFile')) parts.push(openFiles);
  if (apis.includes('crypto')) parts.push(openCrypto);
  const declarations = parts.map((part) => `const ${part.name} = (${String(part)});`);
  return `'use strict';\n${declarations.join('\n')}\nreturn ${installGuest.name}($0, ${EPOCH}, $1);`;
}
