import { readFile } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { hasErrno, messageOf, TemperError } from '../lib/errors.ts';
import type { Logger } from '../telemetry/log.ts';

/** Mounted Secrets change in place; so often they are read again. */
const EVERY_MILLISECONDS = 10_000;

export interface WatchedFilesOptions {
  /** All have to be there. */
  paths: readonly string[];
  /** May be missing; they come after the others. */
  optional?: readonly string[];
  clock: Clock;
  log: Logger;
  /** Told of the contents that are there whenever one differs. What it throws is logged, and what was before goes on. */
  changed: (contents: readonly Buffer[]) => void;
  everyMilliseconds?: number;
}

/** Files that are read again and again. Disposing ends it. */
export class WatchedFiles implements AsyncDisposable {
  readonly #options: WatchedFilesOptions;
  readonly #stopping = new AbortController();
  #contents: readonly Buffer[] = [];
  #running: Promise<void> = Promise.resolve();

  private constructor(options: WatchedFilesOptions) {
    this.#options = options;
  }

  /** Reads them for the first time. Throws TEMPER_CONFIGURATION_INVALID when one that must be there cannot be read. */
  static async open(options: WatchedFilesOptions): Promise<WatchedFiles> {
    const files = new WatchedFiles(options);
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
    const { clock, log, changed, everyMilliseconds = EVERY_MILLISECONDS } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.sleep(everyMilliseconds, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const contents = await this.#read();
        if (same(contents, this.#contents)) continue;
        changed(contents);
        this.#contents = contents;
        log.info({ paths: this.#options.paths }, 'files were replaced');
      } catch (error) {
        log.warn({ error, paths: this.#options.paths }, 'files were replaced and cannot be used; the old ones are');
      }
    }
  }

  async #read(): Promise<readonly Buffer[]> {
    const { paths, optional = [] } = this.#options;
    const needed = await Promise.all(paths.map(required));
    const others = await Promise.all(optional.map(readIfThere));
    return [...needed, ...others.flat()];
  }
}

async function required(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', `file ${path} cannot be read: ${messageOf(error)}`);
  }
}

async function readIfThere(path: string): Promise<Buffer[]> {
  try {
    return [await readFile(path)];
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

function same(one: readonly Buffer[], other: readonly Buffer[]): boolean {
  return one.length === other.length && one.every((content, index) => content.equals(other[index] ?? Buffer.alloc(0)));
}
