import assert from 'node:assert/strict';
import { pollAssertion } from '../../support/poll.ts';
import type { InstalledCluster } from './installed-cluster.ts';

/**
 * The processes to kill, each with a part of its command line that is unique on the node. The first process of a sandbox container is its
 * launcher: all others end with it.
 */
export const PROCESSES = {
  operator: 'temper.mjs serve operator',
  gateway: 'temper.mjs serve gateway',
  'nats-server': '/nats-server --config',
  'the agent container': 'temper.mjs serve agent',
  'the sandbox container': '/launcher service',
} as const;

/** Kills all processes whose command line contains the words. */
export async function kill(cluster: InstalledCluster, words: string): Promise<void> {
  await cluster.node.onNode('kill', '-9', ...(await pidsOf(cluster, words)));
}

/** Kills the processes, which may still be restarting after an earlier kill. */
export async function killRunning(cluster: InstalledCluster, words: string): Promise<void> {
  await pollAssertion(`a process with ${words}`, () => kill(cluster, words));
}

/** The pids of all processes whose command line contains the words; fails when there is none. */
export async function pidsOf({ node }: InstalledCluster, words: string): Promise<string[]> {
  const table = await node.onNode('ps', '-eo', 'pid,args');
  const found = table.split('\n').filter((row) => row.includes(words));
  assert.ok(found.length > 0, `no process matches ${words}:\n${table}`);
  return found.map((row) => row.trim().split(/\s+/)[0] ?? '');
}
