import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

/** Where the gateway is, what its certificate must say and be signed by, and what opens it. */
export interface Door {
  /** `https://address:port` */
  origin: string;
  name: string;
  /** PEM. */
  authority: string;
  token: string;
}

export interface DoorFilesOptions {
  /** Folder with `gateway`, `gateway-name` and `ca.crt`. */
  folder: string;
  tokenFile: string;
  clock: Clock;
}

/** For how long what was read is good without looking again, in milliseconds. */
const FRESH = 1_000;
const MAXIMUM_BYTES = 65_536;

/** The files a pod finds its gateway by. They are replaced while the pod runs, so they are read again and again. */
export class DoorFiles {
  readonly #options: DoorFilesOptions;
  #door: Door | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: DoorFilesOptions) {
    this.#options = options;
  }

  /** As the files were a second ago at most, or as they are now. Throws TEMPER_POD_INVALID. */
  async current(now: 'recent' | 'reread' = 'recent'): Promise<Door> {
    const { clock } = this.#options;
    if (now === 'recent' && this.#door !== undefined && clock.monotonic() - this.#readAt < FRESH) return this.#door;
    this.#door = await this.#read();
    this.#readAt = clock.monotonic();
    return this.#door;
  }

  async #read(): Promise<Door> {
    const { folder, tokenFile } = this.#options;
    const [origin, name, authority, token] = await Promise.all([
      textOf(join(folder, 'gateway')),
      textOf(join(folder, 'gateway-name')),
      textOf(join(folder, 'ca.crt')),
      textOf(tokenFile),
    ]);
    const address = URL.parse(origin);
    if (address === null || address.protocol !== 'https:' || address.pathname !== '/') {
      throw invalid(join(folder, 'gateway'), 'is not of the form https://address:port');
    }
    return { origin: address.origin, name, authority, token };
  }
}

async function textOf(file: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw invalid(file, 'cannot be read', cause);
  }
  const trimmed = text.trim();
  if (trimmed === '' || text.length > MAXIMUM_BYTES) throw invalid(file, 'is empty or too large');
  return trimmed;
}

function invalid(file: string, problem: string, cause?: unknown): TemperError {
  return new TemperError('TEMPER_POD_INVALID', `${printable(file, 200)} ${problem}`, { retry: 'backoff', cause });
}
