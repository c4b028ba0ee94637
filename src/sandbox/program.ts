/** The program of a runner as text: its modules in one scope, without types, imports and exports. */
import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

/** Each module after those it imports. No two of them may declare the same name. */
const MODULES = [
  'pipe',
  'hashing',
  'guest-language',
  'guest-time',
  'guest-host',
  'guest',
  'engine',
  'job',
  'main',
] as const;

/**
 * A script whose value is the entry function. A runner that got its modules as files would strip the types of each by
 * itself, which takes 70 ms and 18 MB, would need the right to read them, and would load a module system for them.
 */
export async function linkRunnerProgram(directory = join(import.meta.dirname, 'runner')): Promise<string> {
  const texts = await Promise.all(MODULES.map((name) => readFile(join(directory, `${name}.ts`), 'utf8')));
  const bodies = withoutTypes(texts).map((text) => text.replace(/^import [^;]*;$/gm, '').replace(/^export /gm, ''));
  return `(() => {'use strict';\n${bodies.join('\n')}\nreturn main;\n})()`;
}

/** Node still calls this function experimental, once per process and on standard error; our users need not hear it. */
function withoutTypes(sources: readonly string[]): string[] {
  // oxlint-disable-next-line typescript/unbound-method -- it is put back as it was
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return sources.map((source) => stripTypeScriptTypes(source));
  } finally {
    process.emitWarning = emitWarning;
  }
}
