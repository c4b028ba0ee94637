// Enforces the NetworkPolicies of a cluster on the node whose network namespace it runs in. One argument: a kubeconfig.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from './announcements.ts';
import { ruleset } from './ruleset.ts';
import type { Namespace, NetworkPolicy, Pod } from './types.ts';
import { type Server, watch } from './watch.ts';

/** Changes within this time are applied in one nftables transaction. */
const BATCH_MS = 10;

async function main([kubeconfig = '']: string[]): Promise<void> {
  const server = await serverOf(kubeconfig);
  const pods = new Map<string, Pod>();
  const namespaces = new Map<string, Namespace>();
  const policies = new Map<string, NetworkPolicy>();
  const addresses = new Map<string, string>();
  const { signal } = new AbortController();
  let change = Promise.withResolvers<void>();
  let turn = Promise.withResolvers<void>();
  const changed = () => change.resolve();
  void watch(server, '/api/v1/pods', pods, changed, signal);
  void watch(server, '/api/v1/namespaces', namespaces, changed, signal);
  void watch(server, '/apis/networking.k8s.io/v1/networkpolicies', policies, changed, signal);
  await listen(async ({ uid, ip }) => {
    addresses.set(uid, ip);
    // The watch may lag: without the pod's labels its policies are unknown.
    do {
      const next = turn.promise;
      changed();
      await next;
    } while (!pods.has(uid));
  });
  let applied = '';
  for (;;) {
    await change.promise;
    await sleep(BATCH_MS);
    change = Promise.withResolvers();
    const { resolve: finishTurn } = turn;
    turn = Promise.withResolvers();
    const rules = ruleset({
      pods: [...pods.values()].map((pod) => withAddress(pod, addresses)),
      namespaces: [...namespaces.values()],
      policies: [...policies.values()],
    });
    // A failed nft ends the process: then no pod starts, and outdated rules are not mistaken for current ones.
    if (rules !== applied) await apply(rules);
    applied = rules;
    finishTurn();
  }
}

/** Uses the announced address until the API server has one. */
function withAddress(pod: Pod, addresses: Map<string, string>): Pod {
  const podIP = addresses.get(pod.metadata.uid);
  if (podIP === undefined) return pod;
  if (pod.status?.podIP === undefined) return { ...pod, status: { ...pod.status, podIP } };
  addresses.delete(pod.metadata.uid);
  return pod;
}

async function apply(rules: string): Promise<void> {
  const nft = spawn('nft', ['-f', '-'], { stdio: ['pipe', 'inherit', 'inherit'] });
  nft.stdin.end(rules);
  const [code] = (await once(nft, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`nft ended with ${code} on:\n${rules}`);
}

async function serverOf(kubeconfig: string): Promise<Server> {
  const { clusters, users } = JSON.parse(await readFile(kubeconfig, 'utf8')) as {
    clusters: [{ cluster: { server: string; 'certificate-authority': string } }];
    users: [{ user: { 'client-certificate': string; 'client-key': string } }];
  };
  const pem = (file: string) => readFile(file, 'utf8');
  const [{ cluster }, { user }] = [clusters[0], users[0]];
  return {
    url: cluster.server,
    ca: await pem(cluster['certificate-authority']),
    cert: await pem(user['client-certificate']),
    key: await pem(user['client-key']),
  };
}

await main(process.argv.slice(2));
