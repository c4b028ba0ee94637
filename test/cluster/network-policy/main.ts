// Enforces the NetworkPolicies of a cluster on the node whose network namespace it runs in. One argument: a kubeconfig.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ruleset } from './ruleset.ts';
import type { Namespace, NetworkPolicy, Pod } from './types.ts';
import { type Server, watch } from './watch.ts';

/** Changes come in bursts; this many milliseconds of them are one transaction. */
const GATHER_MS = 10;

async function main([kubeconfig = '']: string[]): Promise<void> {
  const server = await serverOf(kubeconfig);
  const pods = new Map<string, Pod>();
  const namespaces = new Map<string, Namespace>();
  const policies = new Map<string, NetworkPolicy>();
  const { signal } = new AbortController();
  let wake = () => {};
  let change = new Promise<void>((resolve) => (wake = resolve));
  const changed = () => wake();
  void watch(server, '/api/v1/pods', pods, changed, signal);
  void watch(server, '/api/v1/namespaces', namespaces, changed, signal);
  void watch(server, '/apis/networking.k8s.io/v1/networkpolicies', policies, changed, signal);
  let applied = '';
  for (;;) {
    await change;
    await sleep(GATHER_MS);
    change = new Promise((resolve) => (wake = resolve));
    const rules = ruleset({
      pods: [...pods.values()],
      namespaces: [...namespaces.values()],
      policies: [...policies.values()],
    });
    if (rules === applied) continue;
    // What cannot be applied ends the process, and with it the cluster's tests: rules that are older than the policies must not pass for them.
    await apply(rules);
    applied = rules;
  }
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
