/** The JavaScript engine of the runner: one isolate per job, prepared in advance and used once. */
import type IsolatedVm from 'isolated-vm';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { guestSource } from './guest.ts';
import { sessionSource } from './session/guest-session.ts';

const { createRequire } = process.getBuiltinModule('node:module');

type IvmModule = typeof IsolatedVm;

/** The parameters of a prepared environment. A job with other parameters gets a new environment. */
export interface EnvironmentShape {
  memoryBytes: number;
  apis: readonly ToolApi[];
  /** The environment serves the runs of a session, and no job. */
  isSession?: boolean;
}

/** Receives messages of guest code: a kind and two texts. The guest gets the returned text. */
type MessageHandler = (kind: string, first: string, second: string) => string;

/** How one entry into guest code ended. */
export type EntryResult = 'returned' | 'timeout' | 'memory' | 'threw';

export interface GuestEnvironment {
  readonly shape: EnvironmentShape;
  /** The receiver of messages, which guest code sends only while `start` or `deliver` runs. */
  onMessage: MessageHandler;
  /** `time` is the present time of the guest, in milliseconds since 1970. */
  start(source: string, input: string, time: number, timeoutMilliseconds: number): EntryResult;
  deliver(answer: DeliveredAnswer, timeoutMilliseconds: number): EntryResult;
  /** Another operation of the entry function. */
  enter(operation: string, first: string, second: string, time: number, timeoutMilliseconds: number): EntryResult;
  heapBytes(): number;
  /** The syntax error of a source, with line and column; undefined for a valid program. */
  syntaxError(source: string, filename?: string): string | undefined;
  /** Keeps the compiled bootstrap for later environments of the same shape. Not after guest code has run here. */
  keepCode(): void;
  dispose(): void;
}

/** The answer to a host call. `text` is JSON: the value, or code and message of an error. */
interface DeliveredAnswer {
  call: number;
  ok: boolean;
  text: string;
  /** The present time of the guest from now on. */
  time: number;
}

const FILENAME = 'temper:guest';
/** The answer to a message of the guest that this process cannot handle. */
const NO_ANSWER = '{"ok":false,"message":"the host could not answer"}';
const BYTES_PER_MEBIBYTE = 1_048_576;
/** The smallest heap limit that the engine accepts, in MiB. */
const MIN_HEAP_MIB = 8;

export interface EngineModule {
  version: string;
  prepare(shape: EnvironmentShape): GuestEnvironment;
  /** Whether environments of this shape use code that `keepCode` kept. */
  hasCode(shape: EnvironmentShape): boolean;
}

export function loadEngine(path: string): EngineModule {
  const require = createRequire(path);
  const { version } = require('./package.json') as { version: string };
  const ivm = require(path) as IvmModule;
  const bootstraps = new Bootstraps();
  return {
    version,
    prepare: (shape) => prepare(ivm, bootstraps, shape),
    hasCode: (shape) => bootstraps.has(keyOf(shape)),
  };
}

/**
 * The compiled bootstraps. Their text is the same for all jobs with the same APIs. The code is safe because this process compiles it
 * from its own constant text in an isolate that ran no guest code; the engine does not verify compiled code, so it must never come from
 * elsewhere.
 */
class Bootstraps {
  readonly #texts = new Map<string, string>();
  readonly #code = new Map<string, IsolatedVm.ExternalCopy<ArrayBuffer>>();

  has(key: string): boolean {
    return this.#code.has(key);
  }

  compile(isolate: IsolatedVm.Isolate, key: string, source: () => string): IsolatedVm.Script {
    const text = this.#texts.get(key) ?? `(function ($0, $1) {${source()}\n})`;
    this.#texts.set(key, text);
    const cachedData = this.#code.get(key);
    return isolate.compileScriptSync(text, { filename: FILENAME, ...(cachedData !== undefined && { cachedData }) });
  }

  /** The isolate still has the bootstrap, so it compiles nothing again, and the code has every function that was called in it. */
  keep(isolate: IsolatedVm.Isolate, key: string): void {
    const text = this.#texts.get(key) ?? '';
    const script = isolate.compileScriptSync(text, { filename: FILENAME, produceCachedData: true });
    // The type declarations of the engine lack this member.
    const { cachedData } = script as IsolatedVm.Script & { cachedData?: IsolatedVm.ExternalCopy<ArrayBuffer> };
    if (cachedData !== undefined) this.#code.set(key, cachedData);
  }
}

function keyOf({ apis, isSession = false }: EnvironmentShape): string {
  return isSession ? 'session' : apisText(apis);
}

/** The declared names between bars: `|fetch|clock|`. */
function apisText(apis: readonly ToolApi[]): string {
  return `|${apis.join('|')}|`;
}

function prepare(ivm: IvmModule, bootstraps: Bootstraps, shape: EnvironmentShape): GuestEnvironment {
  const memoryLimit = Math.max(MIN_HEAP_MIB, Math.floor(shape.memoryBytes / BYTES_PER_MEBIBYTE));
  const isolate = new ivm.Isolate({ memoryLimit });
  const context = isolate.createContextSync();
  const post = (kind: unknown, first: unknown, second: unknown): string => {
    try {
      return environment.onMessage(asText(kind), asText(first), asText(second));
    } catch {
      // The exception stays here: its stack and its objects belong to this process.
      return NO_ANSWER;
    }
  };
  const source = (): string => (shape.isSession === true ? sessionSource() : guestSource(shape.apis));
  const make = bootstraps.compile(isolate, keyOf(shape), source).runSync(context, { reference: true });
  const entry = make.applySync(undefined, [new ivm.Callback(post), apisText(shape.apis)], {
    result: { reference: true },
  }) as unknown as IsolatedVm.Reference<(...args: string[]) => void>;
  const enter = (args: string[], timeout: number): EntryResult => {
    const startTime = performance.now();
    try {
      entry.applySync(undefined, args, { timeout: Math.max(1, Math.ceil(timeout)) });
      return 'returned';
    } catch {
      // The thrown value belongs to the guest: reading it could run guest code without a time limit.
      if (isolate.isDisposed) return 'memory';
      return performance.now() - startTime >= timeout ? 'timeout' : 'threw';
    }
  };
  const environment: GuestEnvironment = {
    shape,
    onMessage: () => '',
    start: (text, input, time, timeout) => enter(['start', text, input, '', String(time)], timeout),
    enter: (operation, first, second, time, timeout) => enter([operation, first, second, '', String(time)], timeout),
    deliver: ({ call, ok, text, time }, timeout) =>
      enter(['deliver', String(call), ok ? 'ok' : 'error', text, String(time)], timeout),
    heapBytes: () => heapBytes(isolate),
    syntaxError: (text, filename = 'tool.js') => syntaxError(isolate, text, filename),
    keepCode: () => bootstraps.keep(isolate, keyOf(shape)),
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

/** Compiling runs no guest code, so the error comes from the engine and is safe to read. */
function syntaxError(isolate: IsolatedVm.Isolate, source: string, filename: string): string | undefined {
  try {
    isolate.compileScriptSync(source, { filename });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'the source does not compile';
  }
}
