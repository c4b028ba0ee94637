import { resolve } from 'node:path';
import { type LoadedManifests, type ManifestProblem, loadManifests } from '../../api/manifests.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';

export interface ValidateOptions {
  paths: string[];
  output: 'text' | 'json';
}

/** Validates manifests. Exit 0: all valid; 1: problems; 2: a path cannot be read, or there is no manifest. */
export async function validate(options: ValidateOptions, io: CliIo): Promise<number> {
  let loaded: LoadedManifests;
  try {
    loaded = await loadManifests(pathsFrom(options.paths, io.cwd), { patterns: PATTERN_RULES });
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE')) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
  const { objects, problems, skipped } = loaded;
  if (objects.length + problems.length === 0) {
    const others = skipped.length === 0 ? '' : ` (${skipped.length} objects of other groups)`;
    io.error(
      `temper: TEMPER_USAGE: no manifests in ${options.paths.map((path) => printable(path)).join(', ')}${others}\n`,
    );
    return EXIT.usage;
  }
  if (options.output === 'json') writeJson(loaded, io);
  else writeText(loaded, io);
  return problems.length === 0 ? EXIT.ok : EXIT.refused;
}

/** Keeps paths as typed when they are relative to the process folder, so that messages show them unchanged. */
function pathsFrom(paths: readonly string[], cwd: string): string[] {
  return cwd === process.cwd() ? [...paths] : paths.map((path) => resolve(cwd, path));
}

function writeJson({ objects, problems, skipped }: LoadedManifests, io: CliIo): void {
  for (const problem of problems) writeJsonLine(io, { ...problem });
  writeJsonLine(io, { summary: { valid: objects.length, problems: problems.length, skipped: skipped.length } });
}

function writeText({ objects, problems, skipped, ignoredFiles }: LoadedManifests, io: CliIo): void {
  for (const problem of problems) io.out(problemBlock(problem));
  for (const { file, line, apiVersion, kind } of skipped) {
    io.out(`${printable(file)}:${line}  skipped: ${printable(`${apiVersion} ${kind}`, 120)} is of another group\n`);
  }
  for (const file of ignoredFiles) io.out(ignoredFileNote(file));
  const files = new Set(problems.map(({ file }) => file)).size;
  const summary =
    problems.length === 0 ? 'no problems' : `${count(problems.length, 'problem')} in ${count(files, 'file')}`;
  io.out(`${count(objects.length, 'valid object')}, ${summary}\n`);
}

export function ignoredFileNote(file: string): string {
  return `${printable(file)}  skipped: no manifest, it has no apiVersion and kind\n`;
}

/** Formats one problem for users: location, subject, rule, fix. */
export function problemBlock(problem: ManifestProblem): string {
  const { file, line, column, object, field, rule, message, fix } = problem;
  const subject = [object, field].filter((part) => part !== undefined && part !== '').join(' ');
  const head = `${printable(file)}:${line}:${column}  ${printable(subject === '' ? 'document' : subject)}`;
  return `${head}\n  ${rule}: ${printable(message)}\n  → ${printable(fix)}\n`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
