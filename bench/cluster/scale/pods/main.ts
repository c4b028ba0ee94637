import type { HostMessage, PodMessage, PodReport, ToPods } from './protocol.ts';
import { RenewedToken } from '../renewed-token.ts';
import { type PodHost, SimulatedPod, trustedAuthority } from './simulated-pod.ts';

/** A process that simulates pods: a process may open only so many files, and each pod holds two connections. */
const pods: { pod: SimulatedPod; ended: Promise<void> }[] = [];
const wantedTokens = new Map<string, PromiseWithResolvers<string>>();
const hosts: PodHost[] = [];

const report = (kind: PodReport['kind'], text: string): void => {
  process.send?.({ kind, text } satisfies PodReport);
};

function hostOf({ authority, serverName, ports }: HostMessage): PodHost {
  return {
    secureContext: trustedAuthority(authority),
    serverName,
    ports,
    onAssignment: (agent) => report('assignment', agent),
    onDelivery: (message) => report('delivery', message),
    onAcked: (message) => report('acked', message),
    onError: (error) => report('error', error),
  };
}

/** A new token of the pod, which its node requests in the other process. */
function newToken(agent: string): Promise<string> {
  const wanted = wantedTokens.get(agent) ?? Promise.withResolvers<string>();
  wantedTokens.set(agent, wanted);
  report('token', agent);
  return wanted.promise;
}

function startPod(host: PodHost, { agent, token, address, gateway }: PodMessage): void {
  const pod = new SimulatedPod(host, { agent, token: RenewedToken.of(token, () => newToken(agent)), address, gateway });
  pods.push({ pod, ended: pod.run() });
}

async function stop(): Promise<void> {
  for (const { pod } of pods) pod.stop();
  await Promise.all(pods.map(({ ended }) => ended));
  process.disconnect?.();
}

process.on('message', (message: ToPods) => {
  const [host] = hosts;
  if (message.kind === 'host') hosts.push(hostOf(message));
  else if (message.kind === 'pod' && host !== undefined) startPod(host, message);
  else if (message.kind === 'stop') void stop();
  else if (message.kind === 'token') {
    const wanted = wantedTokens.get(message.agent);
    wantedTokens.delete(message.agent);
    if (message.token === undefined) wanted?.reject(new Error('the API server is away'));
    else wanted?.resolve(message.token);
  }
});
