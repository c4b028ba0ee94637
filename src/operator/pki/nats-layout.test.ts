import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { natsLayout } from './nats-layout.ts';

const URL = 'tls://temper-nats.temper-system.svc:4222';
const layout = (replicas: number, stored?: Record<string, string>) =>
  natsLayout({ namespace: 'temper-system', url: URL, replicas }, stored);

describe('the layout of the NATS servers', () => {
  it('one server is reached by the URL of its Service, and has no routes', () => {
    const expected = {
      file: 'nats-server.conf',
      servers: [{ name: 'temper-nats-0', url: URL }],
      hosts: [],
      conflict: undefined,
    };
    assert.deepEqual(layout(1), expected);
    assert.deepEqual(layout(1, { 'nats-server.conf': 'x' }), expected);
  });

  it('each server of a cluster has a name and an address of its own', () => {
    const { file, servers, hosts, conflict } = layout(3, { 'nats-cluster.conf': 'x' });
    assert.deepEqual({ file, conflict }, { file: 'nats-cluster.conf', conflict: undefined });
    const host = 'temper-nats-1.temper-nats-headless.temper-system.svc';
    assert.deepEqual(servers[1], { name: 'temper-nats-1', url: `tls://${host}:4222` });
    assert.equal(servers.length, 3);
    assert.equal(hosts[1], host);
    assert.deepEqual(layout(3).servers, servers);
  });

  it('a changed number of servers keeps the stored layout and names the remedy', () => {
    const single = layout(3, { 'nats-server.conf': 'x' });
    assert.deepEqual(single.servers, layout(1).servers);
    assert.match(
      single.conflict ?? '',
      /nats\.replicas is 3, but this release has one NATS server;.*Set nats\.replicas back/,
    );
    const cluster = layout(1, { 'nats-cluster.conf': 'x' });
    assert.deepEqual(cluster.servers, layout(3).servers);
    assert.match(cluster.conflict ?? '', /nats\.replicas is 1, but this release has a cluster/);
  });
});
