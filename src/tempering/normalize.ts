import type { ComposeStep, ToolArtifact, ToolTest } from '../api/v1alpha1/emergenttool.ts';
import { giveaways } from '../forge/giveaways.ts';
import { openArtifact } from '../forge/open-artifact.ts';
import type { ForgeEvidence } from '../forge/types.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import { normalizeSource } from './normalize-source.ts';
import { KNOWN_MEMBERS } from './known-names.ts';
import { normalizeSchema } from './normalize-schema.ts';
import { createVeil, encoded, type Veil } from './veil.ts';

const SHOWN_TESTS = 10;
const DESCRIPTION_BYTES = 180;
const MAXIMUM_CHARACTERS = 96_000;

/** References a compose mapping may hold; their paths are the author's names. */
const REFERENCE = /\$(?:input|prev|steps)(?:\.[A-Za-z0-9_-]{1,64}){0,10}/g;

/**
 * One artifact as a reviewer model may see it: facts and stand-ins in place of the author's prose. Printable ASCII throughout.
 * Throws SyntaxError for source that does not parse and RangeError when the whole is too long to be judged honestly:
 * a part that is cut off is a part nobody reviewed.
 */
export function normalizeArtifact(artifact: ToolArtifact, evidence?: ForgeEvidence): string {
  const veil = createVeil((name) => KNOWN_MEMBERS.has(name));
  const inputSchema = normalizeSchema(JSON.parse(artifact.inputSchema) as Json, veil);
  const outputSchema = normalizeSchema(JSON.parse(artifact.outputSchema) as Json, veil);
  const shown = {
    name: veil.name(artifact.name),
    description: encoded(artifact.description, DESCRIPTION_BYTES),
    requires: {
      apis: artifact.requires.apis,
      domains: artifact.requires.domains.map((domain) => veil.text(domain)),
      paths: artifact.requires.paths.map((path) => veil.text(path)),
    },
    limits: artifact.limits,
    inputSchema: inputSchema.schema,
    outputSchema: outputSchema.schema,
    ...implementationOf(artifact, veil),
    tests: artifact.tests.slice(0, SHOWN_TESTS).map((test, index) => testOf(test, index, evidence, veil)),
    testsInAll: artifact.tests.length,
    sourceHoldsTestTexts: holdsTestTexts(artifact),
    ...(evidence === undefined ? {} : { measured: measuredOf(evidence) }),
    replaced: { ...veil.counts(), schemaProse: inputSchema.dropped + outputSchema.dropped },
  };
  const text = ascii(JSON.stringify(shown, null, 1));
  if (text.length > MAXIMUM_CHARACTERS)
    throw new RangeError(`${text.length} characters are more than ${MAXIMUM_CHARACTERS}`);
  return text;
}

function implementationOf(artifact: ToolArtifact, veil: Veil): JsonObject {
  const { mode, source, steps } = artifact.implementation;
  if (mode === 'Compose') return { mode, steps: (steps ?? []).map((step) => stepOf(step, veil)) };
  const { lines, facts } = normalizeSource(source ?? '', veil);
  return { mode, code: lines, facts };
}

function stepOf(step: ComposeStep, veil: Veil): JsonObject {
  const [tool = '', digest] = step.tool.split('@');
  return {
    name: veil.name(step.name),
    tool: `${veil.name(tool)}${digest === undefined ? '' : `@${digest.slice(0, 19)}`}`,
    inputMapping: mapped(JSON.parse(step.inputMapping) as Json, veil),
    ...(step.condition === undefined ? {} : { condition: withReferences(step.condition, veil) }),
  };
}

function mapped(value: Json, veil: Veil): Json {
  if (typeof value === 'string') return withReferences(value, veil);
  if (Array.isArray(value)) return value.map((item) => mapped(item, veil));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [veil.name(key), mapped(item, veil)]));
}

/** References are structure and stay; the words around them are veiled one stretch at a time. */
function withReferences(text: string, veil: Veil): string {
  let out = '';
  let end = 0;
  for (const match of text.matchAll(REFERENCE)) {
    if (match.index > end) out += veil.text(text.slice(end, match.index));
    const [root = '', ...path] = match[0].split('.');
    out += [root, ...path.map((name) => veil.name(name))].join('.');
    end = match.index + match[0].length;
  }
  return end < text.length ? out + veil.text(text.slice(end)) : out;
}

function testOf(test: ToolTest, index: number, evidence: ForgeEvidence | undefined, veil: Veil): JsonObject {
  const runs = (evidence?.tests ?? []).filter((result) => result.case === index + 1);
  return {
    input: veil.value(JSON.parse(test.input) as Json),
    ...(test.expectedOutput === undefined
      ? {}
      : { expectedOutput: veil.value(JSON.parse(test.expectedOutput) as Json) }),
    ...(test.fixtures === undefined ? {} : { fixtures: test.fixtures.length }),
    runs: runs.map(({ run, passed, milliseconds }) => ({ run, passed, milliseconds: Math.round(milliseconds) })),
  };
}

function holdsTestTexts(artifact: ToolArtifact): boolean {
  const open = openArtifact(artifact);
  if ('malformed' in open) throw new SyntaxError(open.malformed);
  return giveaways(open).length > 0;
}

function measuredOf(evidence: ForgeEvidence): JsonObject {
  return {
    milliseconds: Math.round(evidence.milliseconds),
    heapBytes: evidence.heapBytes,
    warnings: evidence.warnings.length,
  };
}

function ascii(text: string): string {
  return text.replaceAll(
    /[^\x20-\x7e\n]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
