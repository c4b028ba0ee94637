import { once } from 'node:events';
import { RenewedToken } from '../renewed-token.ts';
import type { HostMessage, PodMessage, PodReport, ToPods } from './protocol.ts';
import { type PodHost, SimulatedPod, trustedAuthority } from './simulated-pod.ts';

/** The pods of this process: a process may open only so many files, and each pod holds two connections. */
class Pods {
  readonly #host: PodHost;
  readonly #pods: { pod: SimulatedPod; ended: Promise<void> }[] = [];
  readonly #wantedTokens = new Map<string, PromiseWithResolvers<string>>();

  constructor({ authority, serverName, ports }: HostMessage) {
    this.#host = {
      secureContext: trustedAuthority(authority),
      serverName,
      ports,
      onAssignment: (agent) => report('assignment', agent),
      onDelivery: (message) => report('delivery', message),
      onAcked: (message) => report('acked', message),
      onError: (error) => report('error', error),
    };
  }

  received(message: ToPods): void {
    if (message.kind === 'pod') this.#start(message);
    else if (message.kind === 'stop') void this.#stop();
    else if (message.kind === 'token') this.#renewed(message.agent, message.token);
  }

  #start({ agent, token, address, gateway }: PodMessage): void {
    const renewed = RenewedToken.of(token, () => this.#newToken(agent));
    const pod = new SimulatedPod(this.#host, { agent, token: renewed, address, gateway });
    this.#pods.push({ pod, ended: pod.run() });
  }

  /** A new token of the pod, which its node requests in the other process. */
  #newToken(agent: string): Promise<string> {
    const wanted = this.#wantedTokens.get(agent) ?? Promise.withResolvers<string>();
    this.#wantedTokens.set(agent, wanted);
    report('token', agent);
    return wanted.promise;
  }

  #renewed(agent: string, token: string | undefined): void {
    const wanted = this.#wantedTokens.get(agent);
    this.#wantedTokens.delete(agent);
    if (token === undefined) wanted?.reject(new Error('the API server is away'));
    else wanted?.resolve(token);
  }

  async #stop(): Promise<void> {
    for (const { pod } of this.#pods) pod.stop();
    await Promise.all(this.#pods.map(({ ended }) => ended));
    process.disconnect?.();
  }
}

function report(kind: PodReport['kind'], text: string): void {
  process.send?.({ kind, text } satisfies PodReport);
}

// The benchmark has ended, perhaps by a signal: the pods would poll without end.
process.once('disconnect', () => process.exit());
const [first] = (await once(process, 'message')) as [HostMessage];
const pods = new Pods(first);
process.on('message', (message: ToPods) => pods.received(message));
