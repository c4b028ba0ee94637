import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { testLeakWarnings } from '../../forge/test-runs/test-leakage.ts';
import { parseArtifact, type ParsedArtifact } from '../../forge/parse-artifact.ts';
import type { TestCase } from '../../forge/request.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { normalizeSource } from './normalize-source.ts';
import { isWellKnownData, WELL_KNOWN_TEXTS } from './well-known-names.ts';
import { normalizeSchema } from './normalize-schema.ts';
import { normalizeSteps } from './normalize-steps.ts';
import { createObfuscator, type Obfuscator } from './obfuscation.ts';

const MAX_CHARACTERS = 128_000;

/**
 * One artifact in the form a reviewer model may read: facts and placeholders instead of the author's prose, in printable ASCII.
 * It has everything that decides what the tool does: all of the source, both schemas as the validator obeys them, every test
 * with its fixtures. Throws SyntaxError for source that does not parse and RangeError when the text exceeds the limit. It is
 * never truncated, because no model would review the rest.
 */
export function normalizeArtifact(artifact: ToolArtifact): string {
  const open = parseArtifact(artifact);
  if ('malformed' in open) throw new SyntaxError(open.malformed);
  const obfuscator = createObfuscator(isWellKnownData, WELL_KNOWN_TEXTS);
  const { requires } = artifact;
  // The implementation first: a citation of a line of it says the least by chance.
  const sections: JsonObject = {
    ...implementationOf(open, obfuscator),
    name: obfuscator.name(artifact.name),
    description: obfuscator.hidden(artifact.description),
    requires: {
      apis: requires.apis,
      domains: requires.domains.map((domain) => obfuscator.text(domain)),
      paths: requires.paths.map((path) => obfuscator.text(path)),
    },
    limits: { milliseconds: open.durationMilliseconds, bytes: open.memoryBytes },
    inputSchema: normalizeSchema(open.inputSchema, obfuscator),
    outputSchema: normalizeSchema(open.outputSchema, obfuscator),
    tests: open.tests.map((test) => testOf(test, obfuscator)),
    sourceHoldsTestTexts: testLeakWarnings(open).length > 0,
  };
  const text = layOut({ ...sections, ...obfuscator.tables() });
  if (text.length <= MAX_CHARACTERS) return text;
  throw new RangeError(
    `a reviewer would read ${text.length} characters, and reads at most ${MAX_CHARACTERS}; use fewer or shorter tests and texts`,
  );
}

function implementationOf({ artifact, plan }: ParsedArtifact, obfuscator: Obfuscator): JsonObject {
  const { mode, source } = artifact.implementation;
  if (plan !== undefined) return { mode, steps: normalizeSteps(plan, obfuscator) };
  const { lines, facts } = normalizeSource(source ?? '', obfuscator);
  return { mode, code: lines, facts };
}

function testOf({ input, expectedOutput, fixtures }: TestCase, obfuscator: Obfuscator): JsonObject {
  return {
    input: obfuscator.value(input),
    ...(expectedOutput === undefined ? {} : { expectedOutput: obfuscator.value(expectedOutput) }),
    ...(fixtures.length === 0
      ? {}
      : {
          fixtures: fixtures.map((fixture) => ({
            tool: obfuscator.name(fixture.tool),
            ...(fixture.input === undefined ? {} : { input: obfuscator.value(fixture.input) }),
            output: obfuscator.value(fixture.output),
          })),
        }),
  };
}

/** One JSON object with a line per section, and a line per item of the sections that are lists. Printable ASCII. */
function layOut(sections: JsonObject): string {
  const lines = Object.entries(sections).map(([name, value]) => `${JSON.stringify(name)}:${sectionText(value)}`);
  return toAscii(`{\n${lines.join(',\n')}\n}`);
}

function sectionText(value: Json): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  return `[\n${value.map((item) => JSON.stringify(item)).join(',\n')}\n]`;
}

function toAscii(text: string): string {
  return text.replaceAll(
    /[^\x20-\x7e\n]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
