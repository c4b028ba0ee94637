import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type ChartObject, renderChart } from '../../cluster/helm.ts';
import { freePorts, killServer, type Server, startServer } from '../../cluster/process.ts';
import { tool } from '../../cluster/tools.ts';
import { startNatsFixture } from '../../support/nats/nats-fixture.ts';
import { pollValue } from '../../support/poll.ts';

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
}

/** The exporter as the chart starts it, with the ports of this test. */
async function startExporter(folder: string, port: number, monitoring: string): Promise<Server> {
  const objects = await renderChart('--set', 'nats.exporter.enabled=true');
  const exporter = containersOf(objects, 'temper-nats').find(({ name }) => name === 'exporter');
  assert.ok(exporter !== undefined);
  assert.deepEqual(exporter.ports, [{ name: 'metrics', containerPort: 7777 }]);
  const flags = exporter.args.map((arg) =>
    arg === '7777' ? String(port) : arg === 'http://127.0.0.1:8222' ? monitoring : arg,
  );
  assert.equal(flags.filter((flag, index) => flag !== exporter.args[index]).length, 2);
  const path = await tool('nats-exporter');
  return startServer(folder, { name: 'nats-exporter', path, flags: ['-addr', '127.0.0.1', ...flags] });
}

function containersOf(objects: readonly ChartObject[], name: string): readonly Container[] {
  const workload = objects.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === name);
  const spec = workload?.['spec'] as { template: { spec: { containers: Container[] } } } | undefined;
  return spec?.template.spec.containers ?? [];
}

describe('the exporter beside NATS', () => {
  it('the flags of the chart export the server and each stream', async () => {
    await using nats = await startNatsFixture();
    const folder = await mkdtemp(join(tmpdir(), 'temper-exporter-'));
    const { port } = await freePorts('port');
    const exporter = await startExporter(folder, port, nats.monitoring);
    try {
      const page = await pollValue(
        'the exporter to read its server',
        async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
        (text) => text.includes('stream_name="temper-inbox"'),
      );
      for (const metric of ['gnatsd_varz_connections', 'gnatsd_varz_mem', 'gnatsd_varz_slow_consumers'])
        assert.match(page, new RegExp(`^${metric}\\{server_id="[^"]+"\\} \\d`, 'm'));
      assert.match(page, /^jetstream_stream_total_bytes\{[^}]*stream_name="temper-audit"[^}]*\} \d/m);
    } finally {
      await killServer(exporter);
      await rm(folder, { recursive: true, force: true });
    }
  });
});
