import type { Json } from '../lib/json.ts';
import { type Member, checkSet } from './checks/set.ts';
import { dottedPath } from './findings.ts';
import type { Finding, PatternRules } from './findings.ts';
import { LARGEST_FILE, findManifestFiles, readBounded } from './manifest-files.ts';
import { type Examined, examine } from './objects.ts';
import { PLAIN_PATTERN_RULES } from './pattern-rules.ts';
import { type SchemaCheck, createSchemaCheck } from './schema-findings.ts';
import type { AnyResource } from './v1alpha1/resources.ts';
import { type ParsedDocument, type Position, parseDocuments } from './yaml-documents.ts';

export interface ManifestProblem {
  file: string;
  /** Line and column count from 1. */
  line: number;
  column: number;
  /** `Kind/name`, where both are known. */
  object?: string;
  /** Dotted path, e.g. `spec.quotas.tokensPerHour`; empty for the document as a whole. */
  field: string;
  /** Stable name of the rule that is broken; the list is in `docs/reference/manifests.md`. */
  rule: string;
  message: string;
  fix: string;
}

interface LoadedObject {
  object: AnyResource;
  file: string;
  line: number;
}

export interface LoadedManifests {
  /** The objects that break no rule by themselves, in the order they are written. */
  objects: LoadedObject[];
  /** In the order of files and lines. Empty: everything may be used. */
  problems: ManifestProblem[];
  /** Objects of other groups, which were not looked at. */
  skipped: { file: string; line: number; apiVersion: string; kind: string }[];
}

export interface ManifestOptions {
  /** The pattern language; only its plainest rules when absent. */
  patterns?: PatternRules;
}

interface Loaded extends Member {
  file: string;
  document: ParsedDocument;
}

/** Holds the compiled schemas, which cost more than most checks: one serves for many files and objects. */
export interface ManifestLoader {
  /**
   * Reads manifests from files and folders and checks every rule of every object and between them, all at once.
   * Throws TEMPER_MANIFEST_UNREADABLE for a path that cannot be read; everything else is a problem in the answer.
   */
  load(paths: readonly string[]): Promise<LoadedManifests>;
  /** Every rule that one object must keep by itself. Places are those of the object alone: line and column are 1. */
  validate(value: Json): ManifestProblem[];
}

export function createManifestLoader(options: ManifestOptions = {}): ManifestLoader {
  const rules: Rules = { patterns: options.patterns ?? PLAIN_PATTERN_RULES, check: createSchemaCheck() };
  return { load: (paths) => load(paths, rules), validate: (value) => validate(value, rules) };
}

/** `load` of a loader that is used once. */
export async function loadManifests(paths: readonly string[], options: ManifestOptions = {}): Promise<LoadedManifests> {
  return createManifestLoader(options).load(paths);
}

/** `validate` of a loader that is used once. */
export function validateObject(value: Json, options: ManifestOptions = {}): ManifestProblem[] {
  return createManifestLoader(options).validate(value);
}

interface Rules {
  patterns: PatternRules;
  check: SchemaCheck;
}

async function load(paths: readonly string[], rules: Rules): Promise<LoadedManifests> {
  const result: LoadedManifests = { objects: [], problems: [], skipped: [] };
  const members: Loaded[] = [];
  for (const file of await findManifestFiles(paths)) {
    const text = await textOf(file, result);
    if (text === undefined) continue;
    const { documents, flaws } = parseDocuments(text);
    for (const flaw of flaws) result.problems.push(problemOf(flaw, file, flaw.position));
    const before = result.objects.length;
    for (const document of documents) addDocument(document, file, rules, result, members);
    // Which of two equal keys was meant is anybody's guess, so nothing of such a file is used.
    if (flaws.length > 0) result.objects.length = before;
  }
  for (const { member, ...finding } of checkSet(members, rules.patterns)) {
    result.problems.push(problemOf(finding, member.file, member.document.locate(finding.path), titleOf(member)));
  }
  return { ...result, problems: inOrder(result.problems) };
}

function validate(value: Json, { check, patterns }: Rules): ManifestProblem[] {
  const start = { line: 1, column: 1 };
  const examined = examine(value, check, patterns, () => undefined);
  if (!examined.foreign) return examined.findings.map((finding) => problemOf(finding, '', start, titleOf(examined)));
  const message = `${examined.apiVersion} ${examined.kind} is no kind of ours`;
  return [problemOf({ path: ['kind'], rule: 'kind', message, fix: 'see the list of kinds' }, '', start)];
}

function addDocument(
  document: ParsedDocument,
  file: string,
  { check, patterns }: Rules,
  result: LoadedManifests,
  members: Loaded[],
): void {
  const examined = examine(document.value, check, patterns, (path) => document.source(path));
  const { line } = document.locate([]);
  if (examined.foreign) {
    result.skipped.push({ file, line, apiVersion: examined.apiVersion, kind: examined.kind });
    return;
  }
  for (const finding of examined.findings) {
    result.problems.push(problemOf(finding, file, document.locate(finding.path), titleOf(examined)));
  }
  if (examined.findings.length === 0) {
    result.objects.push({ object: document.value as unknown as AnyResource, file, line });
  }
  const member = memberOf(examined, file, document, line);
  if (member !== undefined) members.push(member);
}

function memberOf(
  examined: Extract<Examined, { foreign: false }>,
  file: string,
  document: ParsedDocument,
  line: number,
): Loaded | undefined {
  const { kind, name, sound } = examined;
  if (kind === undefined || name === undefined || sound === undefined) return undefined;
  const { metadata, spec } = sound as { metadata?: { namespace?: string }; spec?: unknown };
  const namespace = metadata?.namespace ?? 'default';
  return { kind, name, namespace, place: `${file}:${line}`, spec: spec ?? {}, file, document };
}

async function textOf(file: string, result: LoadedManifests): Promise<string | undefined> {
  const bytes = await readBounded(file);
  const refuse = (rule: string, message: string, fix: string): undefined => {
    result.problems.push(problemOf({ path: [], rule, message, fix }, file, { line: 1, column: 1 }));
    return undefined;
  };
  if (bytes === undefined) {
    return refuse('file-size', `the file has more than ${LARGEST_FILE} bytes`, 'split it into smaller files');
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return refuse('encoding', 'the file is not UTF-8 text', 'save it as UTF-8');
  }
}

function titleOf(named: { kind?: string; name?: string }): string | undefined {
  return named.kind === undefined || named.name === undefined ? undefined : `${named.kind}/${named.name}`;
}

function problemOf(finding: Finding, file: string, at: Position, object?: string): ManifestProblem {
  const { path, rule, message, fix } = finding;
  const place = { file, line: at.line, column: at.column };
  return { ...place, ...(object === undefined ? {} : { object }), field: dottedPath(path), rule, message, fix };
}

/** By place within each file; files stay in the order they were read. */
function inOrder(problems: readonly ManifestProblem[]): ManifestProblem[] {
  const byFile = Map.groupBy(problems, ({ file }) => file);
  return [...byFile.values()].flatMap((some) => some.sort((a, b) => a.line - b.line || a.column - b.column));
}
