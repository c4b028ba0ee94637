import { readFile } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { hasErrno, messageOf, TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';

/** Poll interval. Kubernetes replaces the files of mounted Secrets in place. */
const POLL_INTERVAL_MS = 10_000;

export interface FileWatcherOptions {
  /** Required files. */
  paths: readonly string[];
  /** Files that may be missing; their contents follow those of the required files. */
  optional?: readonly string[];
  clock: Clock;
  log: Logger;
  /** Called with all contents when one changed. An error is logged, and the previous contents stay in use. */
  onChange: (contents: readonly Buffer[]) => void;
  pollIntervalMs?: number;
}

/** Polls files for changes until it is disposed. */
export class FileWatcher implements AsyncDisposable {
  readonly #options: FileWatcherOptions;
  readonly #stopping = new AbortController();
  #contents: readonly Buffer[] = [];
  #running: Promise<void> = Promise.resolve();

  private constructor(options: FileWatcherOptions) {
    this.#options = options;
  }

  /** Reads the files once. Throws TEMPER_CONFIGURATION_INVALID when a required file cannot be read. */
  static async open(options: FileWatcherOptions): Promise<FileWatcher> {
    const files = new FileWatcher(options);
    files.#contents = await files.#read();
    files.#running = files.#watch();
    return files;
  }

  get contents(): readonly Buffer[] {
    return this.#contents;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #watch(): Promise<void> {
    const { clock, log, onChange: changed, pollIntervalMs: everyMilliseconds = POLL_INTERVAL_MS } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.sleep(everyMilliseconds, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const contents = await this.#read();
        if (isEqual(contents, this.#contents)) continue;
        changed(contents);
        this.#contents = contents;
        log.info({ paths: this.#options.paths }, 'files changed and were reloaded');
      } catch (error) {
        log.warn({ error, paths: this.#options.paths }, 'changed files are invalid; the previous contents stay in use');
      }
    }
  }

  async #read(): Promise<readonly Buffer[]> {
    const { paths, optional = [] } = this.#options;
    const required = await Promise.all(paths.map(readRequired));
    const present = await Promise.all(optional.map(readOptional));
    return [...required, ...present.flat()];
  }
}

async function readRequired(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', `file ${path} cannot be read: ${messageOf(error)}`);
  }
}

async function readOptional(path: string): Promise<Buffer[]> {
  try {
    return [await readFile(path)];
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

function isEqual(one: readonly Buffer[], other: readonly Buffer[]): boolean {
  return one.length === other.length && one.every((content, index) => content.equals(other[index] ?? Buffer.alloc(0)));
}
