import { DEFAULT_PORT, splitPort } from '../policy/patterns/hosts.ts';
import type { Decider } from '../policy/types.ts';

/**
 * Why `fetch` of a tool with these hosts never succeeds: the policy denies each of them. Undefined when it does not, and for a tool with a
 * host pattern, which may stand for a host that the policy permits.
 */
export function deniedHosts(hosts: readonly string[], decider: Pick<Decider, 'decide'>): string | undefined {
  if (hosts.length === 0 || hosts.some((host) => !isDenied(host, decider))) return undefined;
  return 'it uses fetch, and this agent may connect to none of its hosts';
}

function isDenied(text: string, decider: Pick<Decider, 'decide'>): boolean {
  const target = text.includes('*') ? undefined : splitPort(text);
  if (target === undefined) return false;
  const { host, port = DEFAULT_PORT } = target;
  return decider.decide({ kind: 'Network', host, port: Number(port) }).effect === 'Deny';
}
