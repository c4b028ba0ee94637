import type { Worker, WorkerOptions } from 'node:worker_threads';
import { onAbort } from '../../../lib/async/abort.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { PageText } from '../html/read-html.ts';
import type { ResponseBody } from './extract-page.ts';

/** Extracts the text of a response. Throws TEMPER_WEB_CONTENT_UNSUPPORTED, and TEMPER_CANCELLED when the signal aborts. */
export type PageReader = (body: ResponseBody, op: Pick<CallOptions, 'signal'>) => Promise<PageText>;

export type ThreadAnswer = { page: PageText } | { error: { code: ErrorCode; message: string } };

export interface PageThreadOptions {
  startThread: (options: WorkerOptions) => Worker;
  timeoutMs?: number;
  /** Of the heap of a thread. A thread beyond it ends, and the agent goes on. */
  maxHeapMegabytes?: number;
}

const DEFAULT_HEAP_MEGABYTES = 96;
/** The start of the thread, and the parsing of the largest page. */
const DEFAULT_TIMEOUT_MS = 20_000;

/** Reads one page at a time, each in a thread of its own with limits of time and memory: HTML comes from anyone. */
export function pageThreads(options: PageThreadOptions): PageReader {
  let last: Promise<unknown> = Promise.resolve();
  return (body, op) => {
    const page = last.then(() => readInThread(body, op.signal, options));
    last = page.catch(() => undefined);
    return page;
  };
}

async function readInThread(
  body: ResponseBody,
  signal: AbortSignal,
  { startThread, timeoutMs = DEFAULT_TIMEOUT_MS, maxHeapMegabytes = DEFAULT_HEAP_MEGABYTES }: PageThreadOptions,
): Promise<PageText> {
  if (signal.aborted) throw cancelled();
  const { promise, resolve, reject } = Promise.withResolvers<ThreadAnswer>();
  // Nothing of the environment of this process: a thread needs none of it.
  const resourceLimits = { maxOldGenerationSizeMb: maxHeapMegabytes, maxYoungGenerationSizeMb: 16, stackSizeMb: 2 };
  const worker = startThread({ workerData: body, resourceLimits, env: {}, execArgv: [] });
  worker.once('message', resolve).once('error', () => reject(failed('needs too much memory')));
  worker.once('exit', () => reject(failed('cannot be parsed')));
  const timer = setTimeout(() => reject(failed('takes too long to read')), timeoutMs);
  using _cancellation = onAbort(signal, () => reject(cancelled()));
  try {
    const answer = await promise;
    if ('page' in answer) return answer.page;
    throw new TemperError(answer.error.code, answer.error.message);
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

function failed(problem: string): TemperError {
  return new TemperError('TEMPER_WEB_CONTENT_UNSUPPORTED', `the page ${problem}`);
}

function cancelled(): TemperError {
  return new TemperError('TEMPER_CANCELLED', 'the call ended before its page was read');
}
