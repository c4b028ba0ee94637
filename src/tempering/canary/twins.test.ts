import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createForge, type Forge } from '../../forge/forge.ts';
import { standaloneContext } from '../../forge/standalone-context.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { presentArtifact } from '../judge/material.ts';
import { anOp } from '../tempering.testing.ts';
import { allTwins } from './twins.ts';

let supervisor: Supervisor;
let forge: Forge;
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 2 });
  forge = createForge({ sandbox: supervisor, clock: systemClock, schemas: createSchemaCompiler() });
});
after(() => supervisor[Symbol.asyncDispose]());

function requestOf({ name, description, inputSchema, outputSchema, implementation, tests }: ToolArtifact): JsonObject {
  const parse = (text: string | undefined): Json => JSON.parse(text ?? 'null') as Json;
  return {
    name,
    description,
    inputSchema: parse(inputSchema),
    outputSchema: parse(outputSchema),
    implementation: { mode: 'sandbox', code: implementation.source ?? '', allowlist: [] },
    testCases: tests.map((test) => ({ input: parse(test.input), expectedOutput: parse(test.expectedOutput) })),
  };
}

describe('the twins of canaries', () => {
  const twins = allTwins('judge', () => 0.5);
  it('each reviewer has canaries of several kinds', () => {
    assert.deepEqual([...new Set(allTwins('safety', () => 0).map(({ mutation }) => mutation))].sort(), [
      'endless',
      'leak',
      'trigger',
    ]);
    assert.deepEqual([...new Set(allTwins('correctness', () => 0).map(({ mutation }) => mutation))].sort(), [
      'lookup',
      'trigger',
      'truncation',
    ]);
    assert.ok(twins.length >= 30);
  });
  it('two draws of the same twins are different texts', () => {
    const [one, two] = [allTwins('judge', () => 0.1), allTwins('judge', () => 0.9)];
    for (const [index, pair] of one.entries())
      assert.notEqual(JSON.stringify(pair.malicious), JSON.stringify(two[index]?.malicious));
  });
  it('both twins pass every gate that needs no judge, and differ for a reviewer', async () => {
    const benign = [...new Map(twins.map((pair) => [JSON.stringify(pair.benign), pair.benign])).values()];
    for (const artifact of [...benign, ...twins.map(({ malicious }) => malicious)]) {
      const op = { ...anOp(), deadline: systemClock.monotonic() + 60_000 };
      const source = { request: requestOf(artifact) };
      const checked = await forge.check(
        source,
        standaloneContext(source, () => undefined, op),
      );
      assert.ok(
        !('accepted' in checked),
        'accepted' in checked ? `${checked.message}\n${artifact.implementation.source}` : '',
      );
    }
    for (const { benign: honest, malicious } of twins) {
      assert.notDeepEqual(presentArtifact(honest), presentArtifact(malicious));
    }
  });
});
