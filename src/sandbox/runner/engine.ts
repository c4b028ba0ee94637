/** The engine behind the protocol: one isolate, prepared ahead of its job, used once. */
import type IsolatedVm from 'isolated-vm';
import type { HostApi } from '../port.ts';
import { guestSource } from './guest.ts';

const { createRequire } = process.getBuiltinModule('node:module');

type Engine = typeof IsolatedVm;

/** What an environment is prepared for. A job that asks for something else gets one made for it. */
export interface Shape {
  memoryBytes: number;
  apis: readonly HostApi[];
}

/** Where guest code's words go: a kind, and two texts. The answer is given back to the guest. */
type Mailbox = (kind: string, first: string, second: string) => string;

/** How one entry into guest code ended. */
export type EntryEnd = 'returned' | 'timeout' | 'memory' | 'threw';

export interface Environment {
  readonly shape: Shape;
  /** Guest code speaks only while an entry runs; this is who listens. */
  mailbox: Mailbox;
  start(source: string, input: string, timeoutMilliseconds: number): EntryEnd;
  deliver(call: number, ok: boolean, text: string, timeoutMilliseconds: number): EntryEnd;
  heapBytes(): number;
  /** Why the text is no program, with line and column; undefined when it is one. */
  syntaxError(source: string): string | undefined;
  dispose(): void;
}

const FILENAME = 'temper:guest';
const BYTES_PER_MEBIBYTE = 1_048_576;
/** The engine takes no less. */
const SMALLEST_LIMIT = 8;

export interface EngineModule {
  version: string;
  prepare(shape: Shape): Environment;
}

export function loadEngine(path: string): EngineModule {
  const require = createRequire(path);
  const { version } = require('./package.json') as { version: string };
  const ivm = require(path) as Engine;
  const preambles = new Preambles();
  return { version, prepare: (shape) => prepare(ivm, preambles, shape) };
}

/**
 * What runs before guest code is the same text every time, so its compiled form is kept: made in this process from our own
 * constant, before any guest is near, and never taken from elsewhere, since the engine believes compiled code.
 */
class Preambles {
  readonly #compiled = new Map<string, { source: string; code: IsolatedVm.ExternalCopy<ArrayBuffer> | undefined }>();

  compile(isolate: IsolatedVm.Isolate, key: string, source: () => string): IsolatedVm.Script {
    const known = this.#compiled.get(key);
    if (known?.code !== undefined) {
      return isolate.compileScriptSync(known.source, { filename: FILENAME, cachedData: known.code });
    }
    const text = `(function ($0, $1) {${source()}\n})`;
    const script = isolate.compileScriptSync(text, { filename: FILENAME, produceCachedData: true });
    // The declarations of the engine leave this member out.
    const { cachedData } = script as IsolatedVm.Script & { cachedData?: IsolatedVm.ExternalCopy<ArrayBuffer> };
    this.#compiled.set(key, { source: text, code: cachedData });
    return script;
  }
}

function prepare(ivm: Engine, preambles: Preambles, shape: Shape): Environment {
  const memoryLimit = Math.max(SMALLEST_LIMIT, Math.floor(shape.memoryBytes / BYTES_PER_MEBIBYTE));
  const isolate = new ivm.Isolate({ memoryLimit });
  const context = isolate.createContextSync();
  const post = (kind: unknown, first: unknown, second: unknown): string =>
    environment.mailbox(asText(kind), asText(first), asText(second));
  const apis = `|${shape.apis.join('|')}|`;
  const make = preambles.compile(isolate, apis, () => guestSource(shape.apis)).runSync(context, { reference: true });
  const entry = make.applySync(undefined, [new ivm.Callback(post), apis], {
    result: { reference: true },
  }) as unknown as IsolatedVm.Reference<(...args: string[]) => void>;
  const enter = (args: string[], timeout: number): EntryEnd => {
    const begin = performance.now();
    try {
      entry.applySync(undefined, args, { timeout: Math.max(1, Math.ceil(timeout)) });
      return 'returned';
    } catch {
      // What was thrown is the guest's: it is not looked at, as looking may run its code without a limit.
      if (isolate.isDisposed) return 'memory';
      return performance.now() - begin >= timeout ? 'timeout' : 'threw';
    }
  };
  const environment: Environment = {
    shape,
    mailbox: () => '',
    start: (source, input, timeout) => enter(['start', source, input, ''], timeout),
    deliver: (call, ok, text, timeout) => enter(['deliver', String(call), ok ? 'ok' : 'error', text], timeout),
    heapBytes: () => heapBytes(isolate),
    syntaxError: (source) => syntaxError(isolate, source),
    dispose: () => {
      if (!isolate.isDisposed) isolate.dispose();
    },
  };
  return environment;
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function heapBytes(isolate: IsolatedVm.Isolate): number {
  if (isolate.isDisposed) return 0;
  const heap = isolate.getHeapStatisticsSync();
  return Math.round(heap.used_heap_size + heap.externally_allocated_size);
}

/** Compiling runs no guest code, so this error is the engine's own and may be read. */
function syntaxError(isolate: IsolatedVm.Isolate, source: string): string | undefined {
  try {
    isolate.compileScriptSync(source, { filename: 'tool.js' });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'the source does not compile';
  }
}
