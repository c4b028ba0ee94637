import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';

const TIER = resolve(import.meta.dirname, '../tier.sh');

let tools: string;
before(async () => {
  tools = await mkdtemp(join(tmpdir(), 'temper-tier-'));
  await writeFile(join(tools, 'uname'), '#!/bin/sh\necho Elsewhere\n');
  await chmod(join(tools, 'uname'), 0o755);
});
after(() => rm(tools, { recursive: true, force: true }));

/** Runs the e2e tier on a machine that cannot run it. */
function runWithoutNode(ci: string): { status: number | null; stdout: string; stderr: string } {
  const env = { ...process.env, PATH: `${tools}:${process.env['PATH'] ?? ''}`, CI: ci, TEMPER_E2E_KUBECONFIG: '' };
  return spawnSync('bash', [TIER, 'e2e', 'echo', 'ran'], { env, encoding: 'utf8' });
}

describe('a tier that this machine cannot run', () => {
  it('a skipped tier succeeds with its reason on a developer machine', () => {
    const { status, stdout, stderr } = runWithoutNode('');
    assert.deepEqual([status, stdout], [0, '']);
    assert.match(stderr, /^test-e2e is skipped: a node needs Linux; run it on Linux, or set TEMPER_E2E_KUBECONFIG/);
  });

  it('a skipped tier fails in continuous integration', () => {
    const { status, stdout, stderr } = runWithoutNode('true');
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /test-e2e is skipped/);
  });
});
