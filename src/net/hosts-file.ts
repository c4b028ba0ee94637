import { type FileHandle, open } from 'node:fs/promises';
import { isIP } from 'node:net';

/** Larger than the published block lists. */
const MAX_BYTES = 32 * 1_048_576;

/** The addresses of host names in a hosts file, as the resolver of the system reads it. */
export interface HostsFile {
  /** Undefined when the file does not name the host. A file that cannot be read names none. */
  addressesOf(host: string): Promise<readonly string[] | undefined>;
}

/** Reads the file again when it has changed. */
export function hostsFile(path: string): HostsFile {
  let version = '';
  let entries: ReadonlyMap<string, readonly string[]> = new Map();
  return {
    async addressesOf(host) {
      const read = await readIfChanged(path, version);
      if (read !== undefined) {
        version = read.version;
        entries = parseHosts(read.text);
      }
      return entries.get(host.toLowerCase());
    },
  };
}

async function readIfChanged(path: string, known: string): Promise<{ version: string; text: string } | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch {
    return known === '' ? undefined : { version: '', text: '' };
  }
  try {
    const { size, mtimeMs, ino } = await handle.stat();
    const version = `${ino} ${size} ${mtimeMs}`;
    if (version === known) return undefined;
    return { version, text: size > MAX_BYTES ? '' : await handle.readFile('utf8') };
  } finally {
    await handle.close();
  }
}

/** Names in lower case with all their addresses, in the order of the file. */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const entries = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      const addresses = entries.get(key);
      if (addresses === undefined) entries.set(key, [address]);
      else addresses.push(address);
    }
  }
  return entries;
}
