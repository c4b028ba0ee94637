import { close, fdatasync, fstat, ftruncate, open, read, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Durability } from './record-store.ts';

const files = {
  open: promisify(open),
  close: promisify(close),
  datasync: promisify(fdatasync),
  stat: promisify(fstat),
  truncate: promisify(ftruncate),
};
const readAt = promisify(read);

/** The maximum number of open files; the least recently used file is closed first. */
const MAX_OPEN_FILES = 32;
const NEWLINE = 0x0a;
const TAIL_BYTES = 65_536;

/**
 * Append-only files of lines that stay open between appends: opening a file, checking its end and closing it cost more than the write.
 * The caller serialises the appends to one file. An incomplete last line, which a crash can leave, is cut off when the file is opened.
 */
export class AppendLogs {
  /** Least recently used first. */
  readonly #descriptors = new Map<string, number>();
  readonly #busy = new Set<string>();
  /** Files with written lines that are not synced yet. */
  readonly #unsynced = new Set<string>();

  /** Resolves when the line has the requested durability. The folder must exist. */
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
      await this.close(file);
      throw error;
    } finally {
      this.#busy.delete(file);
    }
    await this.#closeOldest();
  }

  /** Resolves when every line appended so far is synced. The caller must not append to the file at the same time. */
  async sync(file: string): Promise<void> {
    const descriptor = this.#descriptors.get(file);
    if (descriptor !== undefined && this.#unsynced.has(file)) await this.#syncDescriptor(file, descriptor);
  }

  /** The currently open files. */
  opened(): string[] {
    return [...this.#descriptors.keys()];
  }

  /** Closes a file before it is removed or replaced. The caller must not append to the file at the same time. */
  async close(file: string): Promise<void> {
    const descriptor = this.#descriptors.get(file);
    this.#descriptors.delete(file);
    this.#unsynced.delete(file);
    if (descriptor !== undefined) await files.close(descriptor);
  }

  async #closeOldest(): Promise<void> {
    for (const file of this.#descriptors.keys()) {
      if (this.#descriptors.size <= MAX_OPEN_FILES) return;
      if (this.#busy.has(file)) continue;
      await this.sync(file);
      await this.close(file);
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

/** Truncates the file after its last newline. Searches backwards from the end, one chunk at a time. */
async function cutTornLine(descriptor: number): Promise<void> {
  const { size } = await files.stat(descriptor);
  let end = size;
  while (end > 0) {
    const start = Math.max(0, end - TAIL_BYTES);
    const chunk = Buffer.alloc(end - start);
    await readAt(descriptor, chunk, 0, chunk.length, start);
    const last = chunk.lastIndexOf(NEWLINE);
    if (last !== -1) {
      if (start + last + 1 < size) await files.truncate(descriptor, start + last + 1);
      return;
    }
    end = start;
  }
  if (size > 0) await files.truncate(descriptor, 0);
}

/** Writes synchronously: a copy into the page cache costs less than a round trip through the thread pool. */
function writeWhole(descriptor: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(descriptor, bytes, written, bytes.length - written);
  }
}
