import { resolve } from 'node:path';
import { type LoadedManifests, type ManifestProblem, loadManifests } from '../../api/manifests.ts';
import type { AnyResource } from '../../api/v1alpha1/resources.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { DEFAULT_STATE } from '../cluster/options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';

export interface ValidateOptions {
  paths: string[];
  output: 'text' | 'json';
}

/** Validates manifests. Exit 0: all valid, even with warnings; 1: problems; 2: a path cannot be read, or there is no manifest. */
export async function validate(options: ValidateOptions, io: CliIo): Promise<number> {
  let loaded: LoadedManifests;
  try {
    loaded = await loadManifests(pathsFrom(options.paths, io.cwd), {
      patterns: PATTERN_RULES,
      tools: () => knownToolsOf(io),
    });
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_MANIFEST_UNREADABLE')) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
  const { objects, problems, skipped } = loaded;
  if (objects.length + problems.length === 0) {
    const others = skipped.length === 0 ? '' : ` (${count(skipped.length, 'object')} of other API groups)`;
    io.error(
      `temper: TEMPER_USAGE: no manifests in ${options.paths.map((path) => printable(path)).join(', ')}${others}\n`,
    );
    return EXIT.usage;
  }
  if (options.output === 'json') writeJson(loaded, io);
  else writeText(loaded, io);
  return problems.length === 0 ? EXIT.ok : EXIT.refused;
}

/** Only when the manifests have an agent: the built-in tools take long to load. */
async function knownToolsOf(io: CliIo): Promise<readonly string[]> {
  const { knownTools } = await import('./known-tools.ts');
  return knownTools(DEFAULT_STATE, io);
}

/** Keeps paths as typed when they are relative to the process folder, so that messages show them unchanged. */
function pathsFrom(paths: readonly string[], cwd: string): string[] {
  return cwd === process.cwd() ? [...paths] : paths.map((path) => resolve(cwd, path));
}

function writeJson({ objects, problems, warnings, skipped, ignoredFiles }: LoadedManifests, io: CliIo): void {
  for (const problem of problems) writeJsonLine(io, { severity: 'error', ...problem });
  for (const warning of warnings) writeJsonLine(io, { severity: 'warning', ...warning });
  for (const object of skipped) writeJsonLine(io, { severity: 'note', rule: 'other-group', ...object });
  for (const file of ignoredFiles) writeJsonLine(io, { severity: 'note', rule: 'no-manifest', file });
  for (const note of policiesElsewhere(objects)) writeJsonLine(io, { severity: 'note', ...note });
  const counts = {
    problems: problems.length,
    warnings: warnings.length,
    skipped: skipped.length,
    ignoredFiles: ignoredFiles.length,
  };
  writeJsonLine(io, { summary: { valid: objects.length, ...counts } });
}

function writeText({ objects, problems, warnings, skipped, ignoredFiles }: LoadedManifests, io: CliIo): void {
  for (const problem of problems) io.out(problemBlock(problem));
  for (const warning of warnings) io.out(problemBlock(warning, 'warning: '));
  for (const { file, line, apiVersion, kind } of skipped) {
    io.out(`${printable(file)}:${line}  skipped: ${printable(`${apiVersion} ${kind}`, 120)} is of another group\n`);
  }
  for (const file of ignoredFiles) io.out(ignoredFileNote(file));
  for (const { file, line, object, message } of policiesElsewhere(objects)) {
    io.out(`${printable(file)}:${line}  ${printable(object)}\n  note: ${printable(message)}\n`);
  }
  const files = new Set(problems.map(({ file }) => file)).size;
  const summary =
    problems.length === 0 ? 'no problems' : `${count(problems.length, 'problem')} in ${count(files, 'file')}`;
  const warned = warnings.length === 0 ? '' : `, ${count(warnings.length, 'warning')}`;
  io.out(`${count(objects.length, 'valid object')}, ${summary}${warned}\n`);
}

interface PolicyNote {
  rule: 'policy-elsewhere';
  file: string;
  line: number;
  object: string;
  message: string;
}

/**
 * Agents without any policy of their namespace in these files: the policy is in other files or on the cluster, and the rules between
 * both were not checked. Where other policies of the namespace are given, the missing one is a problem.
 */
function policiesElsewhere(objects: LoadedManifests['objects']): PolicyNote[] {
  const policies = objects.filter(({ object }) => object.kind === 'TrustPolicy');
  const given = new Set(policies.map(({ object }) => namespaceOf(object)));
  return objects.flatMap(({ object, file, line }): PolicyNote[] => {
    if (object.kind !== 'Agent' || given.has(namespaceOf(object))) return [];
    const message = `TrustPolicy "${object.spec.trustPolicyRef.name}" of namespace "${namespaceOf(object)}" is not in these files, so the agent was not checked against it; add its file with -f`;
    return [{ rule: 'policy-elsewhere', file, line, object: `Agent/${object.metadata.name}`, message }];
  });
}

function namespaceOf({ metadata }: AnyResource): string {
  return metadata.namespace ?? 'default';
}

function ignoredFileNote(file: string): string {
  return `${printable(file)}  skipped: no manifest, it has no apiVersion and kind\n`;
}

/** Formats one problem for users: location, subject, rule, fix. */
export function problemBlock(problem: ManifestProblem, severity = ''): string {
  const { file, line, column, object, field, rule, message, fix } = problem;
  const subject = [object, field].filter((part) => part !== undefined && part !== '').join(' ');
  const head = `${printable(file)}:${line}:${column}  ${printable(subject === '' ? 'document' : subject)}`;
  return `${head}\n  ${severity}${rule}: ${printable(message)}\n  → ${printable(fix)}\n`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
