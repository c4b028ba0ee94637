import { basename, dirname, resolve, sep } from 'node:path';
import { type Json, member } from '../lib/json.ts';
import { type SetFinding, type SetMember, checkManifestSet } from './checks/set.ts';
import { manifestWarnings } from './checks/warnings.ts';
import { dottedPath } from './findings.ts';
import type { Finding, PatternRules, RuleName } from './findings.ts';
import { MAX_FILE_BYTES, findManifestFiles, readBounded } from './manifest-files.ts';
import { type CheckedObject, checkObject } from './check-object.ts';
import { PLAIN_PATTERN_RULES } from './pattern-rules.ts';
import { type KindSchemaCheck, createKindSchemaCheck } from './schema-findings.ts';
import type { AnyResource } from './v1alpha1/resources.ts';
import { type ParsedDocument, type SourcePosition, parseDocuments } from './yaml-documents.ts';

export interface ManifestProblem {
  file: string;
  /** Line and column start at 1. */
  line: number;
  column: number;
  /** `Kind/name`, if both are known. */
  object?: string;
  /** Dotted path, e.g. `spec.quotas.tokensPerHour`; empty for the document as a whole. */
  field: string;
  /** Stable name of the violated rule; `docs/reference/manifests.md` lists them. */
  rule: RuleName;
  message: string;
  fix: string;
}

interface LoadedObject {
  object: AnyResource;
  file: string;
  line: number;
}

export interface LoadedManifests {
  /** The objects without violations of their own, in file order. Cross-object violations do not exclude an object. */
  objects: LoadedObject[];
  /** In the order of files and lines. Empty when all manifests are valid. */
  problems: ManifestProblem[];
  /** What is valid and has no effect, or has an effect that the author may not expect. In the order of files and lines. */
  warnings: ManifestProblem[];
  /** Objects of other API groups, which are not validated. */
  skipped: { file: string; line: number; apiVersion: string; kind: string }[];
  /** Files beside or below a kustomization that are no manifests: their documents have neither apiVersion nor kind. */
  ignoredFiles: string[];
}

export interface ManifestOptions {
  /** The pattern language. Defaults to PLAIN_PATTERN_RULES. */
  patterns?: PatternRules;
  /** Names of tools that exist outside of the manifests; asked only when they have an agent. Absent: names of tools give no warning. */
  tools?: () => Promise<readonly string[]>;
}

interface Loaded extends SetMember {
  file: string;
  document: ParsedDocument;
}

/** Holds the compiled schemas. Compiling costs more than most checks, so reuse one loader for many files and objects. */
export interface ManifestLoader {
  /**
   * Reads manifests from files and folders, and checks all rules of each object and between the objects.
   * Throws TEMPER_MANIFEST_UNREADABLE for a path that cannot be read; reports all other errors as problems in the result.
   */
  load(paths: readonly string[]): Promise<LoadedManifests>;
  /** Checks all rules that concern a single object. Line and column of the problems are always 1. */
  validate(value: Json): ManifestProblem[];
}

export function createManifestLoader(options: ManifestOptions = {}): ManifestLoader {
  const { patterns = PLAIN_PATTERN_RULES, tools } = options;
  const rules: ValidationRules = { patterns, check: createKindSchemaCheck(), ...(tools && { tools }) };
  return { load: (paths) => load(paths, rules), validate: (value) => validate(value, rules) };
}

/** `load` with a new loader. */
export async function loadManifests(paths: readonly string[], options: ManifestOptions = {}): Promise<LoadedManifests> {
  return createManifestLoader(options).load(paths);
}

interface ValidationRules {
  patterns: PatternRules;
  check: KindSchemaCheck;
  tools?: () => Promise<readonly string[]>;
}

async function load(paths: readonly string[], rules: ValidationRules): Promise<LoadedManifests> {
  const result: LoadedManifests = { objects: [], problems: [], warnings: [], skipped: [], ignoredFiles: [] };
  const members: Loaded[] = [];
  const files = await findManifestFiles(paths);
  const mayIgnore = ignorableFiles(files, paths);
  for (const file of files) {
    const text = await textOf(file, result);
    if (text === undefined) continue;
    const { documents, errors } = parseDocuments(text);
    if (mayIgnore.has(file) && errors.length === 0 && documents.every(({ value }) => isOtherData(value))) {
      result.ignoredFiles.push(file);
      continue;
    }
    for (const error of errors) result.problems.push(problemOf(error, file, error.position));
    const before = result.objects.length;
    for (const document of documents) addDocument(document, file, rules, result, members);
    // With a duplicate key the intended value is unknown, so no object of the file is used.
    if (errors.length > 0) result.objects.length = before;
  }
  const located = ({ member, ...finding }: SetFinding<Loaded>): ManifestProblem =>
    problemOf(finding, member.file, member.document.locate(finding.path), titleOf(member));
  result.problems.push(...checkManifestSet(members, rules.patterns).map(located));
  const tools = members.some(({ kind }) => kind === 'Agent') ? await rules.tools?.() : undefined;
  const warnings = manifestWarnings(members, rules.patterns, tools).map(located);
  return { ...result, problems: inOrder(result.problems), warnings: inOrder(warnings) };
}

/**
 * A kustomization names the manifests of its folder, so other YAML and JSON files may lie beside them. Elsewhere, and for a file
 * that the user names, a missing apiVersion or kind is a mistake.
 */
function ignorableFiles(files: readonly string[], named: readonly string[]): Set<string> {
  const folders = files
    .filter((file) => KUSTOMIZATIONS.includes(basename(file)))
    .map((file) => `${dirname(resolve(file))}${sep}`);
  return new Set(
    files.filter((file) => !named.includes(file) && folders.some((folder) => resolve(file).startsWith(folder))),
  );
}

const KUSTOMIZATIONS: readonly string[] = ['kustomization.yaml', 'kustomization.yml'];

function isOtherData(value: Json): boolean {
  return member(value, 'apiVersion') === undefined && member(value, 'kind') === undefined;
}

function validate(value: Json, { check, patterns }: ValidationRules): ManifestProblem[] {
  const start = { line: 1, column: 1 };
  const examined = checkObject(value, check, patterns, () => undefined);
  if (!examined.foreign) return examined.findings.map((finding) => problemOf(finding, '', start, titleOf(examined)));
  const message = `${examined.apiVersion} ${examined.kind} is not a Temper kind`;
  return [
    problemOf(
      { path: ['kind'], rule: 'kind', message, fix: 'see docs/reference/manifests.md for the kinds' },
      '',
      start,
    ),
  ];
}

function addDocument(
  document: ParsedDocument,
  file: string,
  { check, patterns }: ValidationRules,
  result: LoadedManifests,
  members: Loaded[],
): void {
  const examined = checkObject(document.value, check, patterns, (path) => document.source(path));
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
  examined: Extract<CheckedObject, { foreign: false }>,
  file: string,
  document: ParsedDocument,
  line: number,
): Loaded | undefined {
  const { kind, name, validPart: sound } = examined;
  if (kind === undefined || name === undefined || sound === undefined) return undefined;
  const { metadata, spec } = sound as { metadata?: { namespace?: string }; spec?: unknown };
  const namespace = metadata?.namespace ?? 'default';
  return { kind, name, namespace, location: `${file}:${line}`, spec: spec ?? {}, file, document };
}

async function textOf(file: string, result: LoadedManifests): Promise<string | undefined> {
  const bytes = await readBounded(file);
  const refuse = (rule: RuleName, message: string, fix: string): undefined => {
    result.problems.push(problemOf({ path: [], rule, message, fix }, file, { line: 1, column: 1 }));
    return undefined;
  };
  if (bytes === undefined) {
    return refuse('file-size', `the file has more than ${MAX_FILE_BYTES} bytes`, 'split it into smaller files');
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

function problemOf(finding: Finding, file: string, at: SourcePosition, object?: string): ManifestProblem {
  const { path, rule, message, fix } = finding;
  const place = { file, line: at.line, column: at.column };
  return { ...place, ...(object === undefined ? {} : { object }), field: dottedPath(path), rule, message, fix };
}

/** By position within each file; files stay in the order of reading. */
function inOrder(problems: readonly ManifestProblem[]): ManifestProblem[] {
  const byFile = Map.groupBy(problems, ({ file }) => file);
  return [...byFile.values()].flatMap((some) => some.sort((a, b) => a.line - b.line || a.column - b.column));
}
