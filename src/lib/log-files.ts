import { close, fdatasync, fstat, ftruncate, open, read, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Durability } from './records.ts';

const files = {
  open: promisify(open),
  close: promisify(close),
  datasync: promisify(fdatasync),
  stat: promisify(fstat),
  truncate: promisify(ftruncate),
};
const readAt = promisify(read);

/** Files kept open at most; the one not used for longest is closed first. */
const KEPT_OPEN = 32;
const NEWLINE = 0x0a;
const TAIL_BYTES = 65_536;

/**
 * Append-only files of lines that stay open between appends: opening, looking at the end and closing cost more than writing.
 * The caller appends to one file one line after another. A line without its end, which a crash left, is cut off when the file
 * is opened.
 */
export class LogFiles {
  /** In order of last use. */
  readonly #descriptors = new Map<string, number>();
  readonly #busy = new Set<string>();
  /** Files with lines that are written and not synced. */
  readonly #unsynced = new Set<string>();

  /** Resolves when the line is as durable as asked for. The folder must be there. */
  async append(file: string, line: string, durability: Durability): Promise<void> {
    this.#busy.add(file);
    try {
      const descriptor = this.#descriptors.get(file) ?? (await openLog(file));
      this.#descriptors.delete(file);
      this.#descriptors.set(file, descriptor);
      writeWhole(descriptor, Buffer.from(`${line}\n`));
      this.#unsynced.add(file);
      if (durability === 'synced') await this.#syncDescriptor(file, descriptor);
    } catch (error) {
      await this.forget(file);
      throw error;
    } finally {
      this.#busy.delete(file);
    }
    await this.#closeOldest();
  }

  /** Resolves when every line appended so far is synced; nobody appends meanwhile. */
  async sync(file: string): Promise<void> {
    const descriptor = this.#descriptors.get(file);
    if (descriptor !== undefined && this.#unsynced.has(file)) await this.#syncDescriptor(file, descriptor);
  }

  /** Files open now. */
  opened(): string[] {
    return [...this.#descriptors.keys()];
  }

  /** Closes a file that nobody appends to, before it is removed or replaced. */
  async forget(file: string): Promise<void> {
    const descriptor = this.#descriptors.get(file);
    this.#descriptors.delete(file);
    this.#unsynced.delete(file);
    if (descriptor !== undefined) await files.close(descriptor);
  }

  async #closeOldest(): Promise<void> {
    for (const file of this.#descriptors.keys()) {
      if (this.#descriptors.size <= KEPT_OPEN) return;
      if (this.#busy.has(file)) continue;
      await this.sync(file);
      await this.forget(file);
    }
  }

  async #syncDescriptor(file: string, descriptor: number): Promise<void> {
    await files.datasync(descriptor);
    this.#unsynced.delete(file);
  }
}

async function openLog(file: string): Promise<number> {
  const descriptor = await files.open(file, 'a+', 0o600);
  try {
    await cutTornLine(descriptor);
    return descriptor;
  } catch (error) {
    await files.close(descriptor);
    throw error;
  }
}

/** Looks for the last line end from the back, a piece at a time. */
async function cutTornLine(descriptor: number): Promise<void> {
  const { size } = await files.stat(descriptor);
  let end = size;
  while (end > 0) {
    const start = Math.max(0, end - TAIL_BYTES);
    const piece = Buffer.alloc(end - start);
    await readAt(descriptor, piece, 0, piece.length, start);
    const last = piece.lastIndexOf(NEWLINE);
    if (last !== -1) {
      if (start + last + 1 < size) await files.truncate(descriptor, start + last + 1);
      return;
    }
    end = start;
  }
  if (size > 0) await files.truncate(descriptor, 0);
}

/** In place: a copy into the kernel's memory costs less than handing it to another thread. */
function writeWhole(descriptor: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(descriptor, bytes, written, bytes.length - written);
  }
}
