/**
 * Runs in a confined process before its program, as text without types. A file that the process may not see does not exist for it: many
 * programs look for files in folders of the system, and only expect that none is there.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { resolve } from 'node:path';

type Call = (...given: unknown[]) => unknown;

const NAMES = ['access', 'lstat', 'mkdir', 'open', 'opendir', 'readFile', 'readdir', 'readlink', 'stat', 'utimes'];
/** The permission model has none of them for open files. A program needs them in its own home only, which does not outlive it. */
const CHANGES = ['chmod', 'chown', 'utimes', 'sync', 'datasync'];

function asMissing(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_ACCESS_DENIED') return error;
  const message = `ENOENT: no such file or directory (${error.message})`;
  return Object.assign(error, { code: 'ENOENT', errno: -2, message });
}

/** The functions of the three styles, with the error of a file that does not exist. */
function replace(name: string): void {
  const [sync, later, promised] = [
    Reflect.get(fs, `${name}Sync`),
    Reflect.get(fs, name),
    Reflect.get(fs.promises, name),
  ];
  Reflect.set(fs, `${name}Sync`, (...given: unknown[]) => {
    try {
      return Reflect.apply(sync as Call, fs, given);
    } catch (error) {
      throw asMissing(error);
    }
  });
  Reflect.set(fs.promises, name, async (...given: unknown[]) => {
    try {
      return await Reflect.apply(promised as Call, fs.promises, given);
    } catch (error) {
      throw asMissing(error);
    }
  });
  Reflect.set(fs, name, (...given: unknown[]) => {
    const done = given.at(-1) as Call;
    const answered: Call = (error, ...values) => done(asMissing(error), ...values);
    try {
      Reflect.apply(later as Call, fs, [...given.slice(0, -1), answered]);
    } catch (error) {
      process.nextTick(done, asMissing(error));
    }
  });
}

/** Resolving links looks at each folder above, which the process may not see; its own folders have no links in their paths. */
function replaceRealpath(): void {
  const real = (path: unknown): string => resolve(String(path));
  const later: Call = (path, ...rest) => process.nextTick(rest.at(-1) as Call, null, real(path));
  Reflect.set(fs, 'realpathSync', Object.assign(real, { native: real }));
  Reflect.set(fs, 'realpath', Object.assign(later, { native: later }));
  Reflect.set(fs.promises, 'realpath', async (path: unknown) => real(path));
}

async function replaceChanges(): Promise<void> {
  const handle = await fs.promises.open(process.cwd(), 'r');
  const ofHandles = Object.getPrototypeOf(handle) as object;
  await handle.close();
  for (const name of CHANGES) {
    Reflect.set(ofHandles, name, async () => undefined);
    const ofDescriptors = `f${name}`;
    Reflect.set(fs, `${ofDescriptors}Sync`, () => undefined);
    Reflect.set(fs, ofDescriptors, (...given: unknown[]) => process.nextTick(given.at(-1) as Call, null));
  }
}

const exists = fs.existsSync;
fs.existsSync = (path) => {
  try {
    return exists(path);
  } catch {
    return false;
  }
};
for (const name of NAMES) replace(name);
replaceRealpath();
await replaceChanges();
syncBuiltinESMExports();
