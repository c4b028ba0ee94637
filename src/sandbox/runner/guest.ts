/**
 * The bootstrap of every isolate. It removes what guest code must not have and adds the functions that a job declares.
 *
 * The functions of the guest modules never run in this process. Their text runs in the guest, in one strict scope.
 * Therefore they may use each other, but nothing else of their modules, and they take the built-ins that they need before
 * guest code can change them. The bootstrap is not a security boundary: it gives clear errors early. The boundary is the
 * process.
 */
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import {
  type HostBridge,
  buildBridge,
  buildHasher,
  addCrypto,
  addFetch,
  addFiles,
  type PostToRunner,
} from './guest-host.ts';
import {
  removeUnsafeGlobals,
  fixBufferSizes,
  defineHidden,
  hideFunctionSource,
  type Primordials,
  takePrimordials,
} from './guest-language.ts';
import { buildEncoder, buildLossCheck, buildObjectCheck, buildValueReader } from './guest-result.ts';
import {
  type GuestClock,
  replaceClock,
  replaceDateFormat,
  replaceTemporalClock,
  seedRandomness,
} from './guest-time.ts';
import { buildUndeclaredUse, denyRandomness } from './guest-undeclared.ts';
import { addWebGroup, webGlobalsSource } from './web/web-globals.ts';

/** Describes a thrown object that is no error by its JSON, or by its kind when JSON shows nothing of it. */
function describeObject(own: Primordials, thrown: object): string {
  let json: string | undefined;
  try {
    json = own.stringify(thrown);
  } catch {
    // It contains itself or a BigInt.
  }
  const text = json === undefined || json === '{}' ? own.text(thrown) : json;
  return `the tool threw ${text.length > 400 ? `${own.slice(text, 400)}…` : text}`;
}

/** Describes a thrown value, which may be of any type. Reading it may run guest code. */
export function describe(own: Primordials, thrown: unknown): [text: string, stack: string] {
  try {
    if (typeof thrown !== 'object' || thrown === null) return [own.slice(own.text(thrown), 4096), ''];
    const { name, message, stack } = thrown as { name: unknown; message: unknown; stack: unknown };
    if (typeof stack !== 'string') return [describeObject(own, thrown), ''];
    const title = name === undefined ? 'Error' : own.slice(own.text(name), 256);
    const text = message === undefined || message === '' ? title : `${title}: ${own.slice(own.text(message), 3840)}`;
    return [text, own.slice(stack, 2048)];
  } catch {
    return ['a value that cannot be read', ''];
  }
}

/** The entry function for the runner: `start` once, then `deliver` for each response of the host. */
function buildEntry(
  own: Primordials,
  post: PostToRunner,
  bridge: HostBridge,
  beforeEntry: { source(source: string): void; time(time: number): void },
) {
  const encode = buildEncoder(own);
  const threw = (kind: string, error: unknown): void => {
    const [text, stack] = describe(own, error);
    post(kind, text, stack);
  };
  const finish = (value: unknown): void => {
    let text: string;
    try {
      text = encode(value);
    } catch (error) {
      threw('invalid', error);
      return;
    }
    post('value', text, '');
  };
  const finishLater = async (value: unknown): Promise<void> => {
    let resolved: unknown;
    try {
      resolved = await value;
    } catch (error) {
      threw('threw', error);
      return;
    }
    finish(resolved);
  };
  const selectEntry =
    '\n;typeof execute === "function" ? execute : typeof run === "function" ? run : undefined\n//# sourceURL=tool.js';
  const start = (source: string, input: string): void => {
    let entry: unknown;
    beforeEntry.source(source);
    try {
      entry = own.evaluate(source + selectEntry);
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
  return (operation: string, first: string, second: string, third: string, time: string): void => {
    beforeEntry.time(own.parse(time) as number);
    if (operation === 'deliver') bridge.deliver(first, second === 'ok', third);
    else start(first, second);
  };
}

interface DeclaredApis {
  declared: (api: ToolApi) => boolean;
  clock: GuestClock;
  own: Primordials;
  bridge: HostBridge;
  post: PostToRunner;
}

/** Runs in the guest. The functions that it calls are in its scope only when the job needs them; see guestSource. */
function addDeclaredApis({ declared, clock, own, bridge, post }: DeclaredApis): void {
  replaceClock(own, clock);
  if (declared('random')) seedRandomness(own, () => post('seed', '', ''));
  else denyRandomness(own, buildUndeclaredUse('random'));
  if (declared('fetch')) addFetch(own, bridge);
  if (declared('fs.readFile')) addFiles(own, bridge);
  const hashing = declared('crypto');
  if (hashing || declared('random')) addCrypto(own, post, { hashing, random: declared('random') });
}

/** Runs in the guest. `apis` lists the declared names between bars: `|fetch|clock|`. */
function installGuest(post: PostToRunner, apis: string, addWebGlobals: (own: Primordials, post: PostToRunner) => void) {
  const own = takePrimordials();
  removeUnsafeGlobals(own);
  fixBufferSizes(own);
  addWebGlobals(own, post);
  const bridge = buildBridge(own, post);
  const declared = (api: ToolApi): boolean => own.includes(apis, `|${api}|`);
  const time = { start: 0, now: 0, entered: false };
  const denied = buildUndeclaredUse('clock');
  const clock: GuestClock = declared('clock')
    ? { now: () => time.now, start: () => time.start }
    : { now: denied, start: denied };
  addDeclaredApis({ declared, clock, own, bridge, post });
  const entry = buildEntry(own, post, bridge, {
    source: (source) => replaceTemporalClock(own, clock, source),
    time(now) {
      time.now = now;
      if (!time.entered) time.start = now;
      time.entered = true;
    },
  });
  hideFunctionSource(own);
  return entry;
}

export type GuestFunction = (...args: never[]) => unknown;

/** What every guest needs. */
export const COMMON_FUNCTIONS: readonly GuestFunction[] = [
  takePrimordials,
  defineHidden,
  removeUnsafeGlobals,
  fixBufferSizes,
  hideFunctionSource,
  buildBridge,
  describeObject,
  describe,
  buildObjectCheck,
  buildLossCheck,
  buildValueReader,
  buildEncoder,
  replaceClock,
  replaceDateFormat,
  replaceTemporalClock,
  addWebGroup,
];

/** The program of a job; see `guestProgram`. It is compiled for every job, so it contains only the functions that the job needs. */
export function guestSource(apis: readonly ToolApi[]): string {
  const functions = [...COMMON_FUNCTIONS, buildEntry, buildUndeclaredUse, addDeclaredApis, installGuest];
  functions.push(apis.includes('random') ? seedRandomness : denyRandomness);
  if (apis.includes('fetch')) functions.push(addFetch);
  if (apis.includes('fs.readFile')) functions.push(addFiles);
  if (apis.includes('crypto') || apis.includes('random')) functions.push(addCrypto, buildHasher);
  return guestProgram(functions, installGuest);
}

/**
 * The body of a function that takes the `post` callback as `$0` and the declared names as `$1`, and returns the entry
 * function that `install` makes. Each function is in parentheses, which makes the engine compile it eagerly.
 */
export function guestProgram(functions: readonly GuestFunction[], install: GuestFunction): string {
  const declarations = functions.map((guestFunction) => `const ${guestFunction.name} = (${String(guestFunction)});`);
  return `'use strict';\n${declarations.join('\n')}\nconst web = (own, post) => {${webGlobalsSource()}};\nreturn ${install.name}($0, $1, web);`;
}
