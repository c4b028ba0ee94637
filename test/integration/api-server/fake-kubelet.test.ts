import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { Latch } from '../../../src/lib/async/latch.ts';
import { type Pod, TYPES } from '../../../src/operator/kube/types.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { runFakeKubelet } from '../../support/api-server/fake-kubelet.ts';
import { poll } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const LABEL = 'temper.dev/test-pod';
const NAMESPACE = 'late';
const POD = { namespace: NAMESPACE, name: 'reused' };

/** A transport whose watches deliver nothing after the first deletion begins, until the latch opens. Counts the requests to delete. */
function lateTransport(transport: Transport, resumed: Latch, signal: AbortSignal) {
  const seen = { deletions: 0 };
  const late: Transport = {
    ...transport,
    async send(request, sent) {
      if (request.method === 'DELETE') seen.deletions += 1;
      return transport.send(request, sent);
    },
    async open(request, opened) {
      const chunks = await transport.open(request, opened);
      return (async function* () {
        let isLate = false;
        for await (const chunk of chunks) {
          if (isLate) await resumed.opened(signal);
          yield chunk;
          isLate ||= Buffer.from(chunk).includes('deletionTimestamp');
        }
      })();
    },
  };
  return { late, seen };
}

describe('the kubelet of a control plane without nodes', () => {
  let server: ApiServerFixture;

  before(async () => {
    server = await startApiServerFixture();
    await server.createNamespace(NAMESPACE);
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: NAMESPACE } };
    await server.client.create(TYPES.serviceAccounts, account as never, NEVER_ABORTED);
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  const createPod = () => {
    const metadata = { ...POD, labels: { [LABEL]: 'true' }, finalizers: ['temper.dev/test'] };
    const containers = [{ name: 'main', image: 'temper:test' }];
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers, serviceAccountName: 'default' } };
    return server.client.create<Pod>(TYPES.pods, pod as never, NEVER_ABORTED);
  };
  const read = () => server.client.get<Pod>(TYPES.pods, POD, NEVER_ABORTED);

  it('a list that is older than the next pod of the same name deletes only its own pod', async () => {
    const stopping = new AbortController();
    const resumed = new Latch();
    await using transport = await server.connect();
    const { late, seen } = lateTransport(transport, resumed, stopping.signal);
    const running = runFakeKubelet(late, new Set(), stopping.signal, LABEL);
    try {
      await createPod();
      await poll('the pod to run', async () => (await read())?.status?.phase === 'Running');
      await server.client.delete(TYPES.pods, POD, {}, NEVER_ABORTED);
      await poll('the kubelet to delete the pod', () => seen.deletions > 0);
      await server.client.patch(TYPES.pods, POD, { metadata: { finalizers: null } } as never, NEVER_ABORTED);
      await poll('the end of the pod', async () => (await read()) === undefined);
      const next = await createPod();
      const before = seen.deletions;
      await poll('the kubelet to look at its list again', () => seen.deletions >= before + 2);
      const found = await read();
      assert.equal(found?.metadata.uid, next.metadata.uid);
      assert.equal(found?.metadata.deletionTimestamp, undefined);
    } finally {
      resumed.open();
      stopping.abort();
      await running;
    }
  });
});
