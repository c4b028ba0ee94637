import type { ComposeStep, ToolArtifact, ToolTest } from '../../api/v1alpha1/emergenttool.ts';
import { testLeakWarnings } from '../../forge/test-runs/test-leakage.ts';
import { parseArtifact } from '../../forge/parse-artifact.ts';
import type { ForgeEvidence } from '../../forge/types.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { normalizeSource } from './normalize-source.ts';
import { WELL_KNOWN_MEMBERS } from './well-known-names.ts';
import { normalizeSchema } from './normalize-schema.ts';
import { createObfuscator, encodeTruncated, type Obfuscator } from './obfuscation.ts';

const MAX_TESTS = 10;
const MAX_DESCRIPTION_BYTES = 180;
const MAX_CHARACTERS = 96_000;

/** References in a compose mapping; their path segments are names chosen by the author. */
const REFERENCE = /\$(?:input|prev|steps)(?:\.[A-Za-z0-9_-]{1,64}){0,10}/g;

/**
 * One artifact in the form a reviewer model may read: facts and placeholders instead of the author's prose, in printable ASCII.
 * Throws SyntaxError for source that does not parse and RangeError when the text exceeds the limit. It is never truncated,
 * because no model would review the rest.
 */
export function normalizeArtifact(artifact: ToolArtifact, evidence?: ForgeEvidence): string {
  const obfuscator = createObfuscator((name) => WELL_KNOWN_MEMBERS.has(name));
  const inputSchema = normalizeSchema(JSON.parse(artifact.inputSchema) as Json, obfuscator);
  const outputSchema = normalizeSchema(JSON.parse(artifact.outputSchema) as Json, obfuscator);
  const normalized = {
    name: obfuscator.name(artifact.name),
    description: encodeTruncated(artifact.description, MAX_DESCRIPTION_BYTES),
    requires: {
      apis: artifact.requires.apis,
      domains: artifact.requires.domains.map((domain) => obfuscator.text(domain)),
      paths: artifact.requires.paths.map((path) => obfuscator.text(path)),
    },
    limits: artifact.limits,
    inputSchema: inputSchema.schema,
    outputSchema: outputSchema.schema,
    ...implementationOf(artifact, obfuscator),
    tests: artifact.tests.slice(0, MAX_TESTS).map((test, index) => testOf(test, index, evidence, obfuscator)),
    testsInAll: artifact.tests.length,
    sourceHoldsTestTexts: holdsTestTexts(artifact),
    ...(evidence === undefined ? {} : { measured: measuredOf(evidence) }),
    replaced: { ...obfuscator.counts(), schemaProse: inputSchema.dropped + outputSchema.dropped },
  };
  const text = toAscii(JSON.stringify(normalized, null, 1));
  if (text.length > MAX_CHARACTERS) throw new RangeError(`${text.length} characters are more than ${MAX_CHARACTERS}`);
  return text;
}

function implementationOf(artifact: ToolArtifact, obfuscator: Obfuscator): JsonObject {
  const { mode, source, steps } = artifact.implementation;
  if (mode === 'Compose') return { mode, steps: (steps ?? []).map((step) => stepOf(step, obfuscator)) };
  const { lines, facts } = normalizeSource(source ?? '', obfuscator);
  return { mode, code: lines, facts };
}

function stepOf(step: ComposeStep, obfuscator: Obfuscator): JsonObject {
  const [tool = '', digest] = step.tool.split('@');
  return {
    name: obfuscator.name(step.name),
    tool: `${obfuscator.name(tool)}${digest === undefined ? '' : `@${digest.slice(0, 19)}`}`,
    inputMapping: obfuscatedMapping(JSON.parse(step.inputMapping) as Json, obfuscator),
    ...(step.condition === undefined ? {} : { condition: obfuscateAroundReferences(step.condition, obfuscator) }),
  };
}

function obfuscatedMapping(value: Json, obfuscator: Obfuscator): Json {
  if (typeof value === 'string') return obfuscateAroundReferences(value, obfuscator);
  if (Array.isArray(value)) return value.map((item) => obfuscatedMapping(item, obfuscator));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [obfuscator.name(key), obfuscatedMapping(item, obfuscator)]),
  );
}

/** Keeps references, which are structure, and obfuscates each stretch of text between them. */
function obfuscateAroundReferences(text: string, obfuscator: Obfuscator): string {
  let out = '';
  let end = 0;
  for (const match of text.matchAll(REFERENCE)) {
    if (match.index > end) out += obfuscator.text(text.slice(end, match.index));
    const [root = '', ...path] = match[0].split('.');
    out += [root, ...path.map((name) => obfuscator.name(name))].join('.');
    end = match.index + match[0].length;
  }
  return end < text.length ? out + obfuscator.text(text.slice(end)) : out;
}

function testOf(
  test: ToolTest,
  index: number,
  evidence: ForgeEvidence | undefined,
  obfuscator: Obfuscator,
): JsonObject {
  const runs = (evidence?.tests ?? []).filter((result) => result.case === index + 1);
  return {
    input: obfuscator.value(JSON.parse(test.input) as Json),
    ...(test.expectedOutput === undefined
      ? {}
      : { expectedOutput: obfuscator.value(JSON.parse(test.expectedOutput) as Json) }),
    ...(test.fixtures === undefined ? {} : { fixtures: test.fixtures.length }),
    runs: runs.map(({ run, passed, milliseconds }) => ({ run, passed, milliseconds: Math.round(milliseconds) })),
  };
}

function holdsTestTexts(artifact: ToolArtifact): boolean {
  const open = parseArtifact(artifact);
  if ('malformed' in open) throw new SyntaxError(open.malformed);
  return testLeakWarnings(open).length > 0;
}

function measuredOf(evidence: ForgeEvidence): JsonObject {
  return {
    milliseconds: Math.round(evidence.milliseconds),
    heapBytes: evidence.heapBytes,
    warnings: evidence.warnings.length,
  };
}

function toAscii(text: string): string {
  return text.replaceAll(
    /[^\x20-\x7e\n]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
