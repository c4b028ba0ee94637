import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { aTerminal } from '../io.testing.ts';
import { discover, type DiscoverOptions } from './discover.ts';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: standard}
spec: {level: {initial: restricted, ceiling: standard}}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: standard}
  model: {primary: openai/gpt-4o-mini}
  prompt: {system: You are careful.}
  grants: {tools: [file_read, file_list]}
---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: csv-guide}
spec: {type: Skill, description: How to read a CSV file., requiredTools: [file_read]}
---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: csv-elsewhere, namespace: other}
spec: {type: Skill, description: How to read a CSV file.}
`;

describe('temper discover', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-discover-'));
    await writeFile(join(folder, 'agent.yaml'), MANIFESTS);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function run(query: string, changes: Partial<DiscoverOptions> = {}) {
    const terminal = aTerminal();
    const options: DiscoverOptions = { paths: ['agent.yaml'], query, output: 'text', ...changes };
    const code = await discover(options, builtInDescriptors(), { ...terminal, cwd: folder });
    return { code, out: terminal.printed(), error: terminal.errors() };
  }

  it('discover prints what the agent may call and the Capabilities of its namespace', async () => {
    const { code, out } = await run('read a csv file');
    assert.equal(code, 0);
    const ids = out
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ +/)[1]);
    assert.ok(ids.includes('tool:file_read') && ids.includes('skill:csv-guide'), out);
    assert.ok(!out.includes('file_write') && !out.includes('csv-elsewhere'), out);
  });

  it('discover --explain prints words, their spelling, links and tokens', async () => {
    const { out } = await run('read a csv flie', { explain: true });
    assert.match(out, /^3 capabilities are visible to agent analyst/m);
    assert.match(out, /^flie +file +\d+$/m);
    assert.match(out, /^skill:csv-guide +.*tool:file_read$/m);
    assert.match(out, /^tokens: all definitions \d+, map \d+, this result \d+$/m);
  });

  it('discover prints JSON with the fields of the tool', async () => {
    const { out } = await run('read a csv file', { output: 'json', explain: true, kind: 'Skill' });
    const found = JSON.parse(out) as {
      capabilities: { id: string }[];
      visible: number;
      matches: { words: string[] }[];
    };
    assert.deepEqual(
      found.capabilities.map(({ id }) => id),
      ['skill:csv-guide'],
    );
    assert.equal(found.visible, 1);
    assert.ok(found.matches[0]?.words.includes('csv'));
  });

  it('discover exits 2 for an unknown kind and an unknown agent, and says when an agent finds nothing', async () => {
    const kind = await run('csv', { kind: 'tools' });
    assert.equal(kind.code, 2);
    assert.match(kind.error, /use tool, skill/);
    assert.equal((await run('csv', { agent: 'unknown' })).code, 2);
    assert.match((await run('xyzzyq')).out, /^agent analyst finds nothing/);
  });
});
