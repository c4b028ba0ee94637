import { type FileHandle, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SerialQueue } from './async/serial-queue.ts';
import { hasErrno, TemperError } from './errors.ts';
import type { Json } from './json.ts';
import { AppendLogs } from './append-log.ts';
import { assertRecordPath, type RecordStore } from './record-store.ts';

/**
 * Records as plain files below `root`: `<collection>/<name>.json` and `<log>.jsonl`.
 * A document is written to a temporary file beside its target, synced and renamed over the target. A log line is one write, followed by a sync unless
 * the caller asks for `written`. A crash can leave an incomplete last line. Its append never resolved, so it is cut off before the next append.
 */
export function fileRecordStore(root: string): RecordStore {
  const queue = new WriteQueue();
  const logs = new AppendLogs();
  const folders = new Folders();
  const place = (path: string, ending: string): string => {
    assertRecordPath(path);
    return join(root, `${path}${ending}`);
  };
  return {
    put: (collection, name, value) => {
      const file = place(`${collection}/${name}`, '.json');
      return queue.run(file, () => writeDocument(file, `${JSON.stringify(value, null, 2)}\n`, folders));
    },
    async get(collection, name) {
      return readDocument(place(`${collection}/${name}`, '.json'));
    },
    async list(collection) {
      const folder = place(collection, '');
      const found = [];
      for (const entry of (await listFolder(folder)).sort()) {
        if (!entry.endsWith('.json')) continue;
        const value = await readDocument(join(folder, entry));
        if (value !== undefined) found.push({ name: entry.slice(0, -'.json'.length), value });
      }
      return found;
    },
    delete: (collection, name) => {
      const file = place(`${collection}/${name}`, '.json');
      return queue.run(file, async () => {
        await rm(file, { force: true });
        await syncFolder(dirname(file));
      });
    },
    async deleteCollection(collection) {
      const folder = place(collection, '');
      const below = logs.opened().filter((file) => file === `${folder}.jsonl` || file.startsWith(`${folder}/`));
      await Promise.all(below.map((file) => queue.run(file, () => logs.close(file))));
      folders.forget(folder);
      await rm(folder, { recursive: true, force: true });
      await rm(`${folder}.jsonl`, { force: true });
      await syncFolder(dirname(folder));
    },
    append: (log, value, durability = 'synced') => {
      const file = place(log, '.jsonl');
      return queue.run(file, async () => {
        const isNew = await folders.make(dirname(file));
        await logs.append(file, JSON.stringify(value), durability);
        if (isNew) await syncFolder(dirname(file));
      });
    },
    sync: (log) => {
      const file = place(log, '.jsonl');
      return queue.run(file, () => logs.sync(file));
    },
    async read(log) {
      return readLines(place(log, '.jsonl'));
    },
  };
}

/** Serialises the writes to each file; writes to different files run concurrently. */
class WriteQueue {
  readonly #queues = new Map<string, SerialQueue>();

  async run(file: string, work: () => Promise<void>): Promise<void> {
    const queue = this.#queues.get(file) ?? new SerialQueue();
    this.#queues.set(file, queue);
    try {
      await queue.run(work);
    } finally {
      if (queue.size === 0) this.#queues.delete(file);
    }
  }
}

async function writeDocument(file: string, text: string, folders: Folders): Promise<void> {
  await folders.make(dirname(file));
  const temporary = `${file}.${process.pid}.tmp`;
  const handle = await open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  await syncFolder(dirname(file));
}

async function readDocument(file: string): Promise<Json | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Json;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw corrupt(file, error);
  }
}

async function readLines(file: string): Promise<Json[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return [];
    throw corrupt(file, error);
  }
  const lines = text.split('\n');
  lines.pop();
  return lines.map((line, index) => {
    try {
      return JSON.parse(line) as Json;
    } catch (error) {
      throw corrupt(`${file} line ${index + 1}`, error);
    }
  });
}

async function listFolder(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (hasErrno(error, 'ENOENT') || hasErrno(error, 'ENOTDIR')) return [];
    throw corrupt(folder, error);
  }
}

/** A cache of existing folders, so that only the first write to each folder calls mkdir. */
class Folders {
  readonly #known = new Set<string>();

  /** Resolves to true when the folder was created; the caller then syncs the folder's own entry too. */
  async make(folder: string): Promise<boolean> {
    if (this.#known.has(folder)) return false;
    const first = await mkdir(folder, { recursive: true, mode: 0o700 });
    if (first !== undefined) await syncFolder(dirname(first));
    this.#known.add(folder);
    return first !== undefined;
  }

  /** Forgets a removed folder and every folder below it. */
  forget(folder: string): void {
    for (const known of this.#known) if (known === folder || known.startsWith(`${folder}/`)) this.#known.delete(known);
  }
}

async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle;
  try {
    handle = await open(folder, 'r');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return;
    throw error;
  }
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function corrupt(location: string, cause: unknown): TemperError {
  return new TemperError('TEMPER_STATE_CORRUPT', `${location} cannot be read; restore it from a copy or move it away`, {
    cause,
  });
}
