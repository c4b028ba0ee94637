import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { systemClock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SafeFetch } from '../../net/fetch.ts';
import { validateTarget } from '../../net/targets.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { createHostCalls, deniedHostCalls, type HostCallFact, type HostCallsOptions } from './host-calls.ts';

let base = '';
let workspace = '';

const op: CallOptions = {
  signal: NEVER_ABORTED,
  deadline: systemClock.monotonic() + 60_000,
  key: 'test',
};

/** Answers without a network, after the host check. */
const fetchAfterVetting: SafeFetch = (request, rules) => {
  const target = validateTarget(request.url, rules);
  return Promise.resolve({ status: 200, headers: {}, body: target.host, url: target.url.href, redirected: false });
};

function broker(changes: Partial<HostCallsOptions> = {}) {
  return createHostCalls({
    requires: { apis: ['fetch', 'fs.readFile'], domains: ['*.example.com', 'ports.test:8443'], paths: ['data/**'] },
    decide: () => ({ effect: 'Allow', rule: 'test', reason: 'allowed', risk: 'low' }),
    fetch: fetchAfterVetting,
    workspace,
    ...changes,
  });
}

async function failsWith(code: ErrorCode, work: () => Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isTemperError(error), String(error));
    assert.equal(error.code, code, error.message);
    assert.ok(!error.message.includes(base), 'the guest must not see a path of the host');
    return true;
  });
}

function refusing(kind: PolicyRequest['kind']): HostCallsOptions['decide'] {
  return (request) => ({ effect: request.kind === kind ? 'Deny' : 'Allow', rule: 'x', reason: 'no', risk: 'low' });
}

describe('the host-call broker', () => {
  before(async () => {
    base = await mkdtemp(join(tmpdir(), 'temper-broker-'));
    workspace = join(base, 'work');
    await mkdir(join(workspace, 'data', 'deep'), { recursive: true });
    await mkdir(join(base, 'work-beside'));
    await writeFile(join(workspace, 'data', 'a.csv'), 'x,y\n1,2\n');
    await writeFile(join(workspace, 'data', 'large.bin'), Buffer.alloc(1_048_577));
    await writeFile(join(workspace, 'secret.txt'), 'inside, not declared');
    await writeFile(join(base, 'outside.txt'), 'outside');
    await writeFile(join(base, 'work-beside', 'b.txt'), 'beside');
    await symlink(join(base, 'outside.txt'), join(workspace, 'data', 'out'));
    await symlink(base, join(workspace, 'data', 'up'));
    await symlink(join(workspace, 'secret.txt'), join(workspace, 'data', 'renamed'));
    await symlink('a.csv', join(workspace, 'data', 'alias.csv'));
    await symlink('loop', join(workspace, 'data', 'loop'));
  });
  after(() => rm(base, { recursive: true }));

  const read = (path: Json, changes: Partial<HostCallsOptions> = {}) =>
    broker(changes).call('fs.readFile', { path }, op);

  it('a declared file is readable by its path, its absolute path and a link below the root', async () => {
    assert.equal(await read('data/a.csv'), 'x,y\n1,2\n');
    assert.equal(await read('data/alias.csv'), 'x,y\n1,2\n');
    assert.equal(await read('./data/deep/../a.csv'), 'x,y\n1,2\n');
    assert.equal(await read(join(workspace, 'data/a.csv')), 'x,y\n1,2\n');
  });

  for (const path of [
    '../outside.txt',
    'data/../../outside.txt',
    'data/out',
    'data/up/outside.txt',
    'data/renamed',
    'secret.txt',
    '/etc/passwd',
    '/proc/self/environ',
    '../work-beside/b.txt',
    '',
    '.',
    'data\0/a.csv',
    '..',
    'a'.repeat(5_000),
  ]) {
    it(`the broker does not read ${JSON.stringify(path.slice(0, 40))}`, () =>
      failsWith('TEMPER_FILE_DENIED', () => read(path)));
  }

  it('the error for an unreadable file contains no path of the host', async () => {
    await failsWith('TEMPER_FILE_FAILED', () => read('data/none.csv'));
    await failsWith('TEMPER_FILE_FAILED', () => read('data/deep'));
    await failsWith('TEMPER_FILE_FAILED', () => read('data/large.bin'));
    await failsWith('TEMPER_FILE_FAILED', () => read('data/loop'));
    await failsWith('TEMPER_FILE_DENIED', () => read(7));
  });

  it('each call asks the policy about the real path of the file', async () => {
    const asked: PolicyRequest[] = [];
    let effect: 'Allow' | 'Deny' | 'Escalate' = 'Allow';
    const decide: HostCallsOptions['decide'] = (request) => {
      asked.push(request);
      return { effect, rule: 'x', reason: 'because', risk: 'low' };
    };
    const calls = broker({ decide });
    await calls.call('fs.readFile', { path: 'data/alias.csv' }, op);
    assert.deepEqual(asked, [{ kind: 'File', path: join(workspace, 'data/a.csv'), access: 'read' }]);
    for (effect of ['Deny', 'Escalate'] as const) {
      await failsWith('TEMPER_FILE_DENIED', () => calls.call('fs.readFile', { path: 'data/a.csv' }, op));
    }
  });

  it('fetch reaches declared hosts only', async () => {
    const fetch = (url: Json, changes: Partial<HostCallsOptions> = {}) => broker(changes).call('fetch', { url }, op);
    assert.equal(((await fetch('https://api.example.com/x')) as { body: string }).body, 'api.example.com');
    assert.equal(((await fetch('https://ports.test:8443/')) as { body: string }).body, 'ports.test');
    for (const url of [
      'https://example.com.evil.test/',
      'https://evil.test/',
      'https://ports.test/',
      'https://api.example.com:8443/',
      'https://evil-example.com/',
    ]) {
      await failsWith('TEMPER_FETCH_DENIED', () => fetch(url));
    }
    await failsWith('TEMPER_FETCH_DENIED', () => fetch('https://api.example.com/', { decide: refusing('Network') }));
    await failsWith('TEMPER_FETCH_DENIED', () => fetch(null));
  });

  it('a tool without domains and paths may use no host function', async () => {
    const none = { requires: { apis: ['fetch', 'fs.readFile'] as const, domains: [], paths: [] } };
    await failsWith('TEMPER_FETCH_DENIED', () => broker(none).call('fetch', { url: 'https://api.example.com/' }, op));
    await failsWith('TEMPER_FILE_DENIED', () => broker(none).call('fs.readFile', { path: 'data/a.csv' }, op));
  });

  it('an undeclared host function is denied even if the policy allows it', async () => {
    const calls = broker({ requires: { apis: ['crypto'], domains: ['*.example.com'], paths: ['data/**'] } });
    await failsWith('TEMPER_HOST_CALL_DENIED', () => calls.call('fetch', { url: 'https://api.example.com/' }, op));
    await failsWith('TEMPER_HOST_CALL_DENIED', () => calls.call('fs.readFile', { path: 'data/a.csv' }, op));
    await failsWith('TEMPER_HOST_CALL_DENIED', () => calls.call('crypto' as 'fetch', {}, op));
    await failsWith('TEMPER_HOST_CALL_DENIED', () => deniedHostCalls.call('fetch', {}, op));
  });

  it('each call is reported with its target and outcome, without contents', async () => {
    const facts: HostCallFact[] = [];
    const calls = broker({ onCall: (fact) => facts.push(fact) });
    await calls.call('fetch', { url: 'https://api.example.com/x?token=secret', body: 'secret' }, op);
    await assert.rejects(calls.call('fs.readFile', { path: '../outside.txt' }, op));
    assert.deepEqual(facts, [
      { api: 'fetch', target: 'api.example.com', outcome: 'allowed' },
      { api: 'fs.readFile', target: '../outside.txt', outcome: 'TEMPER_FILE_DENIED' },
    ]);
  });
});
