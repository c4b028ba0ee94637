/** The minimum safe versions of runtime and engine. The sandbox does not start with older ones. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { TemperError } from '../lib/errors.ts';

/** Older major versions do not block the network with `--permission`. */
const MIN_RUNTIME = [26, 0, 0] as const;
/** Older releases let a guest corrupt the memory of the process. */
const MIN_ENGINE = [7, 0, 1] as const;

export interface EngineFiles {
  /** The file to load. */
  entry: string;
  version: string;
  /** Folders the runner must be able to read. */
  folders: string[];
}

/** Finds the files of the engine. Throws TEMPER_SANDBOX_UNAVAILABLE when it is not installed. */
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

/** Throws TEMPER_SANDBOX_UNAVAILABLE when either version is too old or cannot be parsed. */
export function requireSafeVersions(runtime: string, engine: string): void {
  if (!isAtLeast(runtime, MIN_RUNTIME)) {
    throw new TemperError(
      'TEMPER_SANDBOX_UNAVAILABLE',
      `the sandbox needs Node ${MIN_RUNTIME[0]} or newer and found ${runtime}; start it with bin/temper`,
    );
  }
  if (!isAtLeast(engine, MIN_ENGINE)) {
    throw new TemperError(
      'TEMPER_SANDBOX_UNAVAILABLE',
      `the sandbox needs isolated-vm ${MIN_ENGINE.join('.')} or newer and found ${engine}; run \`make setup\``,
    );
  }
}

function isAtLeast(version: string, minimum: readonly number[]): boolean {
  const match = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})$/.exec(version);
  if (match === null) return false;
  for (const [index, required] of minimum.entries()) {
    const part = Number(match[index + 1]);
    if (part !== required) return part > required;
  }
  return true;
}
