/** The oldest runtime and engine that are safe; below them nothing is run. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { TemperError } from '../lib/errors.ts';

/** Older lines of the runtime leave the network open under their permission flag. */
const RUNTIME_FLOOR = [26, 0, 0] as const;
/** Older releases let a guest corrupt the memory of the process. */
const ENGINE_FLOOR = [7, 0, 1] as const;

export interface EngineFiles {
  /** The file to load. */
  entry: string;
  version: string;
  /** Folders the runner must be able to read. */
  folders: string[];
}

/** Where the engine lies. Throws TEMPER_SANDBOX_UNAVAILABLE when it is missing. */
export function locateEngine(): EngineFiles {
  try {
    const require = createRequire(import.meta.url);
    const entry = require.resolve('isolated-vm');
    const manifest = JSON.parse(readFileSync(require.resolve('isolated-vm/package.json'), 'utf8')) as {
      version: string;
    };
    const loader = createRequire(entry).resolve('node-gyp-build');
    return { entry, version: manifest.version, folders: [folderOf(entry), folderOf(loader)] };
  } catch (cause) {
    throw new TemperError(
      'TEMPER_SANDBOX_UNAVAILABLE',
      'the engine of the sandbox is not installed; run `make setup`',
      {
        cause,
      },
    );
  }
}

function folderOf(file: string): string {
  return file.slice(0, file.lastIndexOf('/'));
}

/** Throws TEMPER_SANDBOX_UNAVAILABLE when either is too old to be safe, or not a version. */
export function requireSafeVersions(runtime: string, engine: string): void {
  if (!isAtLeast(runtime, RUNTIME_FLOOR)) {
    throw new TemperError(
      'TEMPER_SANDBOX_UNAVAILABLE',
      `the sandbox needs Node ${RUNTIME_FLOOR[0]} or newer and found ${runtime}; start it with bin/temper`,
    );
  }
  if (!isAtLeast(engine, ENGINE_FLOOR)) {
    throw new TemperError(
      'TEMPER_SANDBOX_UNAVAILABLE',
      `the sandbox needs isolated-vm ${ENGINE_FLOOR.join('.')} or newer and found ${engine}; run \`make setup\``,
    );
  }
}

function isAtLeast(version: string, floor: readonly number[]): boolean {
  const match = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})$/.exec(version);
  if (match === null) return false;
  for (const [index, least] of floor.entries()) {
    const part = Number(match[index + 1]);
    if (part !== least) return part > least;
  }
  return true;
}
