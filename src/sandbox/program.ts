/** Builds the program of a runner as text: its modules in one scope, without types, imports and exports. */
import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

/** Each module comes after the modules that it imports. Top-level names must be unique across all modules. */
const MODULES = [
  'pipe',
  'hashing',
  'guest-language',
  'guest-time',
  'guest-undeclared',
  'guest-host',
  'guest-result',
  'web/utf8',
  'web/encoding',
  'web/structured-clone',
  'web/url-encoding',
  'web/url-host',
  'web/url-parser',
  'web/url-search-params',
  'web/url',
  'web/web-globals',
  'guest',
  'session/guest-context',
  'session/guest-session',
  'engine',
  'job',
  'session/memory-text',
  'session/execution',
  'session/session',
  'main',
] as const;

/**
 * Returns a script whose value is the entry function. A runner that loads its modules from files would strip the types
 * itself (70 ms and 18 MB), would need permission to read the files, and would load the module system.
 */
export async function linkRunnerProgram(directory = join(import.meta.dirname, 'runner')): Promise<string> {
  const texts = await Promise.all(MODULES.map((name) => readFile(join(directory, `${name}.ts`), 'utf8')));
  const bodies = stripTypes(texts).map((text) => text.replace(/^import [^;]*;$/gm, '').replace(/^export /gm, ''));
  return `(() => {'use strict';\n${bodies.join('\n')}\nreturn main;\n})()`;
}

/** Strips the types. Suppresses the warning that Node prints once per process, because this function is experimental. */
export function stripTypes(sources: readonly string[]): string[] {
  // oxlint-disable-next-line typescript/unbound-method -- it is restored below
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return sources.map((source) => stripTypeScriptTypes(source));
  } finally {
    process.emitWarning = emitWarning;
  }
}
