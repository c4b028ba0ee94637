import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';

const TIMEOUT_MS = 5_000;
const MAX_HEAP_MIB = 64;
/** The excerpt of the source precedes the frames. */
const MAX_STACK = 100_000;

/**
 * The parser that removes types is WebAssembly with a stack of its own: a source that is nested deeply breaks the instance, and
 * Node has one per thread. A thread of its own per source keeps the instance of this process whole.
 */
const WORKER = `
const { workerData } = require('node:worker_threads');
const { stripTypeScriptTypes } = require('node:module');
process.emitWarning = () => {};
let answer;
try { answer = { code: stripTypeScriptTypes(workerData.source, { mode: 'strip' }) }; }
catch (error) { answer = { error: { code: error.code, message: error.message, stack: String(error.stack).slice(0, ${MAX_STACK}) } }; }
workerData.port.postMessage(answer);
Atomics.store(workerData.done, 0, 1);
Atomics.notify(workerData.done, 0);
`;

/** Why types cannot be removed. Lines count from 1, columns from 0. */
interface TypeScriptError {
  message: string;
  line: number;
  column: number;
  /** Whether the source is valid TypeScript that needs more than the removal of types: enums, namespaces, parameter properties. */
  unsupported: boolean;
}

/** The source without types, or why there is none; neither when the parser failed or took too long. */
export interface StrippedSource {
  code?: string;
  error?: TypeScriptError;
}

/** Replaces TypeScript types by blanks, so that every line and column stays. */
export function stripTypes(source: string): StrippedSource {
  const { port1, port2 } = new MessageChannel();
  const done = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(WORKER, {
    eval: true,
    workerData: { port: port2, done, source },
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
  });
  // A worker that fails sends nothing, which is the answer.
  worker.on('error', () => undefined);
  worker.unref();
  Atomics.wait(done, 0, 0, TIMEOUT_MS);
  const { code, error } = (receiveMessageOnPort(port1)?.message ?? {}) as { code?: string; error?: ParserError };
  port1.close();
  void worker.terminate();
  if (code !== undefined) return { code };
  return error?.code === undefined || !Object.hasOwn(UNSUPPORTED, error.code)
    ? {}
    : { error: typeScriptError(source, error, UNSUPPORTED[error.code] === true) };
}

/** An error as the thread sends it. */
interface ParserError {
  code?: string;
  message: string;
  stack: string;
}

/** The codes of Node for errors in a source; whether the syntax is valid and not supported. */
const UNSUPPORTED: Readonly<Record<string, boolean>> = {
  ERR_INVALID_TYPESCRIPT_SYNTAX: false,
  ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX: true,
};

/**
 * Node states the location only in the stack: the line in its first line, the column by a line of carets below the text, in which a tab
 * reaches to the next multiple of four. A range of several lines has marks before its lines in place of carets.
 */
function typeScriptError(source: string, { message, stack }: ParserError, unsupported: boolean): TypeScriptError {
  const [head = '', ...excerpt] = stack.slice(0, stack.indexOf('\n\n')).split('\n');
  const line = Number(/:(\d{1,9})$/.exec(head)?.[1]);
  const text = source.split('\n')[line - 1];
  const carets = excerpt.find((shown) => /^\s*\^+$/.test(shown));
  const isRange = excerpt.some((shown) => shown.startsWith('  > '));
  if (text === undefined || (carets === undefined && !isRange)) return { message, unsupported, ...endOf(source) };
  const column = carets === undefined ? text.search(/\S|$/) : columnAt(text, carets.indexOf('^'));
  return { message, unsupported, line, column };
}

function endOf(source: string): { line: number; column: number } {
  const lines = source.trimEnd().split('\n');
  return { line: lines.length, column: lines.at(-1)?.length ?? 0 };
}

/** The column of a line at a width of its text with expanded tabs. */
function columnAt(text: string, width: number): number {
  let [column, shown] = [0, 0];
  for (; shown < width && column < text.length; column += 1) shown += text[column] === '\t' ? 4 - (shown % 4) : 1;
  return column;
}
