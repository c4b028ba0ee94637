import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type PairedTool, PAIRS, type ToolPair } from '../../../../test/fixtures/redundant-tools/pairs.ts';
import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { denyingHost } from '../../../forge/forge.testing.ts';
import { parseArtifact } from '../../../forge/parse-artifact.ts';
import { canonicalJson } from '../../../lib/canonical.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { createSupervisor, type Supervisor } from '../../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { createToolView } from '../../../tools/view.ts';
import { artifactDigest } from '../../registry/serialization.ts';
import { anArtifact, anOp } from '../../tempering.testing.ts';
import { createVerifier } from '../../verification/verifier.ts';
import { InputRuns } from '../input-runs.ts';
import { compareWithTools } from './tool-comparison.ts';

let supervisor: Supervisor;
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 2, maxRunners: 2 });
});
after(() => supervisor[Symbol.asyncDispose]());

const inputOf = (value: unknown): JsonObject => ({ value: value as Json });
const objectSchema = (member: string, type: JsonObject): string =>
  canonicalJson({ type: 'object', properties: { [member]: type }, required: [member], additionalProperties: false });

/** A tool whose tests state no output: what the tools do makes the difference. */
function artifactOf(tool: PairedTool, type: JsonObject, pinned: Map<string, ToolArtifact>): ToolArtifact {
  const common = {
    description: tool.description,
    inputSchema: objectSchema('value', type),
    outputSchema: '{"type":"object"}',
    tests: tool.tests.map((value) => ({ input: canonicalJson(inputOf(value)) })),
  };
  if (tool.steps === undefined) return anArtifact(tool.name, { ...common, implementation: sandboxed(tool.body ?? '') });
  const steps = tool.steps.map((body, index) => {
    const part = anArtifact(`${tool.name}_part_${index}`, { ...common, tests: [], implementation: sandboxed(body) });
    pinned.set(artifactDigest(part), part);
    const inputMapping = index === 0 ? '{"value":"$input.value"}' : '{"value":"$prev.value"}';
    return { name: `part${index}`, tool: `${part.name}@${artifactDigest(part)}`, inputMapping };
  });
  return anArtifact(tool.name, { ...common, implementation: { mode: 'Compose', steps } });
}

function sandboxed(body: string) {
  return {
    mode: 'Sandbox' as const,
    source: `function execute({ value }) { return { value: (() => { ${body} })() }; }`,
  };
}

/** Whether the examined tool of a pair is found to repeat the other one, among tools with other schemas and with similar names. */
async function isFound({ type, examined, other }: ToolPair): Promise<boolean> {
  const pinned = new Map<string, ToolArtifact>();
  const artifact = artifactOf(examined, type, pinned);
  const verifier = createVerifier({
    openSandbox: async () => ({ sandbox: supervisor, close: async () => undefined }),
    dependency: (digest) => pinned.get(digest),
    view: createToolView(),
    invoke: () => Promise.reject(new TypeError('the pairs call no built-in tool')),
    host: denyingHost,
    schemas: createSchemaCompiler(),
    clock: systemClock,
  });
  const open = parseArtifact(artifact);
  assert.ok(!('malformed' in open), JSON.stringify(open));
  const inService = (tool: PairedTool, kind: JsonObject) => ({
    artifact: artifactOf(tool, kind, pinned),
    tier: 'Shared' as const,
    recorded: async () => tool.used.map(inputOf),
  });
  const decoys = Array.from({ length: 20 }, (_, index) =>
    inService({ ...examined, name: `${examined.name}_${index}` }, { type: 'boolean' }),
  );
  const comparison = await compareWithTools(
    { open, recorded: examined.used.map(inputOf), runs: new InputRuns(verifier, artifact) },
    { tools: [...decoys, inService(other, type)], incomparable: [] },
    { verifier, schemas: createSchemaCompiler() },
    anOp(),
  );
  assert.equal(comparison?.check.cases, 1, `${examined.name} is compared with one tool`);
  return comparison.check.disagreements === 1;
}

describe('the corpus of pairs of tools', () => {
  it('every tool that does the same as another one is found, and no other one, composed tools included', async (t) => {
    const found = new Map<string, number>();
    const wrong: string[] = [];
    for (const pair of PAIRS) {
      const isRepeated = await isFound(pair);
      found.set(pair.kind, (found.get(pair.kind) ?? 0) + (isRepeated ? 1 : 0));
      if (isRepeated !== (pair.kind === 'same behaviour')) wrong.push(`${pair.kind}: ${pair.examined.name}`);
    }
    t.diagnostic(JSON.stringify(Object.fromEntries(found)));
    assert.deepEqual(wrong, []);
    assert.ok(PAIRS.length >= 20);
  });
});
