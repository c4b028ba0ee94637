import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type DesiredNatsServer, nextReloadState } from './nats-reload.ts';

const DESIRED: DesiredNatsServer = {
  servers: [{ name: 'temper-nats-0', url: 'tls://localhost:4222' }],
  certificate: 'certificate',
  caBundle: 'bundle',
  configuration: 'configuration',
  operatorSeed: 'operator',
  systemSeed: 'system',
};
const KUBELET_SYNC_MS = 180_000;
const pendingSince = (now: number) => nextReloadState({ kind: 'unknown' }, DESIRED, now);

describe('the reload of the NATS server', () => {
  it('the first Secrets are pending, but need no reload of a server that just read its files', () => {
    const expected = { kind: 'pending', desired: DESIRED, since: 5, reloadUntil: 0, reported: '' };
    assert.deepEqual(pendingSince(5), expected);
  });

  it('a changed configuration is reloaded until the kubelet has synced the files', () => {
    const changed = { ...DESIRED, configuration: 'other' };
    for (const before of [pendingSince(5), { kind: 'confirmed', desired: DESIRED } as const]) {
      const state = nextReloadState(before, changed, 1_000);
      const times = { since: 1_000, reloadUntil: 1_000 + KUBELET_SYNC_MS };
      assert.deepEqual(state, { kind: 'pending', desired: changed, ...times, reported: '' });
    }
  });

  it('a later change of the certificate does not shorten the reload of a changed configuration', () => {
    const first = nextReloadState(pendingSince(5), { ...DESIRED, configuration: 'other' }, 1_000);
    const desired = { ...DESIRED, configuration: 'other', certificate: 'renewed' };
    const state = nextReloadState(first, desired, 2_000);
    const times = { since: 2_000, reloadUntil: 1_000 + KUBELET_SYNC_MS };
    assert.deepEqual(state, { kind: 'pending', desired, ...times, reported: '' });
  });

  it('unchanged Secrets and a longer CA bundle keep the state', () => {
    const desired = { ...DESIRED, caBundle: 'bundle and next' };
    assert.deepEqual(nextReloadState({ kind: 'confirmed', desired: DESIRED }, desired, 9), {
      kind: 'confirmed',
      desired,
    });
    assert.deepEqual(nextReloadState(pendingSince(5), DESIRED, 9), pendingSince(5));
  });
});
