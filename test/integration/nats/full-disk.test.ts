import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { publish } from '../../../src/nats/jetstream/publish.ts';
import { reconcileTopology, type StreamUsage } from '../../../src/nats/jetstream/topology.ts';
import { CLUSTER_STORE_BYTES, startNatsCluster } from '../../support/nats/cluster-fixture.ts';
import { gauges, newReloads } from '../../support/nats/reloads.ts';
import { withRetry } from '../../support/nats/retry.ts';
import { poll, pollAssertion } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const DISK_BYTES = 16 * 1_024 * 1_024;
const MESSAGE = 'x'.repeat(100_000);
/** More than the small disk holds, and less than the limit of the stream. */
const MESSAGES = 180;
const OPTIONS = { storeBytes: CLUSTER_STORE_BYTES, replicas: 3 };
const needsRoot = process.getuid?.() === 0 ? false : 'only root can mount a small disk';

describe('a NATS server whose disk is full', () => {
  it('the operator names the server, no acknowledged message is lost, and the server returns with a larger disk', {
    timeout: 300_000,
    skip: needsRoot,
  }, async () => {
    await using cluster = await startNatsCluster({ smallDiskBytes: DISK_BYTES });
    const operator = await cluster.connect('operator');
    await pollAssertion('the streams', () => reconcileTopology(operator, OPTIONS));
    const reloads = newReloads();
    const round = () => reloads.tasks.round(cluster.desired, NEVER_ABORTED);
    const auditUsage = async (): Promise<StreamUsage | undefined> => {
      const seen: StreamUsage[] = [];
      await reconcileTopology(operator, { ...OPTIONS, onUsage: (usage) => seen.push(usage) });
      return seen.find(({ stream }) => stream === 'temper-audit');
    };
    await round();
    assert.deepEqual(reloads.gauges, gauges({ up: [1, 1, 1], current: [1, 1, 1] }));
    for (let sent = 0; sent < MESSAGES; sent += 1) {
      await withRetry(() => publish(operator, 'temper.audit.team-a', MESSAGE, { id: `audit-${sent}` }));
    }
    await poll('the report of the server', async () => {
      await round();
      return reloads.gauges['temper_nats_server_up temper-nats-2'] === 0;
    });
    assert.deepEqual(reloads.gauges, gauges({ up: [1, 1, 0], current: [1, 1, 1] }));
    const [warning = ''] = reloads.lines.filter((line) => line.includes('stores nothing'));
    assert.match(warning, /"server":"temper-nats-2".*the disk of the server is full/);
    const copies = await poll('a missing copy', async () => {
      const usage = await auditUsage();
      return usage?.copies.current === 2 && usage;
    });
    assert.equal(copies.messages, MESSAGES);

    const disk = join(cluster.folder, 'temper-nats-2');
    await promisify(execFile)('mount', ['-o', `remount,size=${8 * DISK_BYTES}`, disk]);
    await cluster.servers[2]?.restart();
    await poll('the copy on the larger disk', async () => {
      const usage = await auditUsage();
      return usage?.copies.current === 3 && usage.messages === MESSAGES;
    });
    await round();
    assert.deepEqual(reloads.gauges, gauges({ up: [1, 1, 1], current: [1, 1, 1] }));
  });
});
