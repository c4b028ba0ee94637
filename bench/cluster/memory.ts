import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../../test/e2e/support/installed-cluster.ts';
import { quantile } from '../baseline/baseline.ts';
import { atMost, mebibytes, type Row } from './row.ts';

const MEBIBYTE = 1_048_576;
const POD_LIMIT = 140 * MEBIBYTE;
const SERVER_LIMIT = 110 * MEBIBYTE;
/** A sandbox ends a runner that no job has used for a minute. */
const IDLE_MS = 70_000;

interface ListedPod {
  readonly metadata: { readonly uid: string; readonly name: string };
}

/** The resident memory of pods on a real node that have done nothing for more than a minute. Needs the processes on this machine. */
export async function idleMemory(cluster: InstalledCluster, namespace: string): Promise<Row[]> {
  await sleep(IDLE_MS);
  const agents = await residentBytes(await podsOf(cluster, namespace));
  const servers = await podsOf(cluster, RELEASE_NAMESPACE);
  const rows = [row(`idle agent pod: resident memory, p50 of ${agents.length}`, quantile(agents, 0.5), POD_LIMIT)];
  for (const component of ['operator', 'gateway']) {
    const bytes = await residentBytes(servers.filter(({ metadata }) => metadata.name.includes(`-${component}-`)));
    rows.push(row(`idle ${component}: resident memory, largest of ${bytes.length}`, Math.max(...bytes), SERVER_LIMIT));
  }
  return rows;
}

function row(what: string, bytes: number, limit: number): Row {
  return atMost('goal', what, bytes, limit, mebibytes, {
    note: 'all processes of the pod, shared pages counted in each',
  });
}

async function podsOf(cluster: InstalledCluster, namespace: string): Promise<ListedPod[]> {
  const flags = ['--field-selector', 'status.phase=Running', '--output', 'json'];
  const listed = await cluster.kubectl('get', 'pods', '--namespace', namespace, ...flags);
  return (JSON.parse(listed) as { items: ListedPod[] }).items;
}

/** Bytes per pod: the kubelet names the cgroup of a pod after its UID. */
async function residentBytes(pods: readonly ListedPod[]): Promise<number[]> {
  const bytes = new Map(pods.map(({ metadata }) => [metadata.uid, 0]));
  for (const id of await readdir('/proc')) {
    if (!/^\d+$/.test(id)) continue;
    const [cgroup, status] = await Promise.all(['cgroup', 'status'].map((file) => readProcess(id, file)));
    const uid = [...bytes.keys()].find((known) => cgroup?.includes(`pod${known}`));
    const [, kibibytes = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(status ?? '') ?? [];
    if (uid !== undefined) bytes.set(uid, (bytes.get(uid) ?? 0) + Number(kibibytes) * 1_024);
  }
  return [...bytes.values()];
}

/** A process may end while it is read. */
async function readProcess(id: string, file: string): Promise<string> {
  try {
    return await readFile(`/proc/${id}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
