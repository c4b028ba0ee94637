/** Builds the program of a runner as text: its modules in one scope, without types, imports and exports. */
import { hash, randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { getCompileCacheDir, stripTypeScriptTypes } from 'node:module';
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
 * itself (70 ms and 18 MB), would need permission to read the files, and would load the module system. Stripping the types takes this process
 * 160 ms and the same memory, so the script is kept in the folder of Node's compile cache, if there is one.
 */
export async function linkRunnerProgram(
  directory = join(import.meta.dirname, 'runner'),
  cache = getCompileCacheDir(),
): Promise<string> {
  const texts = await Promise.all(MODULES.map((name) => readFile(join(directory, `${name}.ts`), 'utf8')));
  if (cache === undefined) return link(texts);
  const file = join(cache, `temper-runner-${hash('sha256', JSON.stringify([process.version, texts]))}.js`);
  const kept = await readKept(file);
  if (kept !== undefined) return kept;
  const text = link(texts);
  await keep(file, text);
  return text;
}

function link(texts: readonly string[]): string {
  const bodies = stripTypes(texts).map((text) => text.replace(/^import [^;]*;$/gm, '').replace(/^export /gm, ''));
  return `(() => {'use strict';\n${bodies.join('\n')}\nreturn main;\n})()`;
}

/** The text of a file that `keep` wrote; undefined when there is none, or when it is damaged. */
async function readKept(file: string): Promise<string | undefined> {
  const content = await readFile(file, 'utf8').catch(() => '');
  const text = content.slice(content.indexOf('\n') + 1);
  return content === withDigest(text) ? text : undefined;
}

/** Writes the file in one step, since other processes read it. A folder that cannot be written only costs the next process time. */
async function keep(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}`;
  try {
    await writeFile(temporary, withDigest(text), { mode: 0o600 });
    await rename(temporary, file);
  } catch {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

function withDigest(text: string): string {
  return `${hash('sha256', text)}\n${text}`;
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
