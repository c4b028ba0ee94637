import { TemperError } from '../lib/errors.ts';
import { type AgentPod, addressesOf, normalAddress } from './agent-pod.ts';
import type { BoundAgent, PodBindings } from './pod-bindings.ts';
import { invalidToken, type TokenSubject, wrongAudience } from './token-claims.ts';
import type { TokenVerifier } from './token-verifier.ts';
import type {
  Authenticator,
  EgressGatewayIdentity,
  EgressIdentity,
  PeerIdentity,
  PodIdentity,
  PodToken,
  UserIdentity,
  VerifierIdentity,
} from './types.ts';
import type { VerifierPodIndex } from './verifier-pod-index.ts';

/** The retry delay for clients while the watches catch up. */
const RETRY_MS = 200;

export interface AuthenticatorOptions<A extends BoundAgent> {
  verifier: Pick<TokenVerifier, 'verify' | 'isVerified'>;
  bindings: PodBindings<A>;
  /** Pods with the label of verifiers in the namespace of the release; undefined: this gateway serves none. */
  verifiers?: VerifierPodIndex;
  /** The namespace of the release, with its egress proxy; undefined: this gateway serves none. */
  releaseNamespace?: string | undefined;
  /** Called when more than one Agent names the same pod, or several living pods name the same Agent. */
  onBindingConflict: (podUid: string, agents: readonly A[]) => void;
}

/** Verifies tokens offline and reads pods and Agents from the informer caches: a replaced pod is rejected as soon as the watch reports it. */
export function createAuthenticator<A extends BoundAgent>(options: AuthenticatorOptions<A>): Authenticator {
  return new InformerAuthenticator(options);
}

class InformerAuthenticator<A extends BoundAgent> implements Authenticator {
  readonly #options: AuthenticatorOptions<A>;

  constructor(options: AuthenticatorOptions<A>) {
    this.#options = options;
  }

  isVerified(token: string): boolean {
    return this.#options.verifier.isVerified(token);
  }

  async pod(token: string, address: string): Promise<PodIdentity> {
    const identity = await this.podOrWarm(token, address);
    if (!('agentUid' in identity)) {
      throw new TemperError('TEMPER_POD_NOT_BOUND', 'no agent is bound to this pod');
    }
    return identity;
  }

  async podOrWarm(token: string, address: string): Promise<PodToken | PodIdentity> {
    const subject = await this.#options.verifier.verify(token);
    if (subject.kind !== 'pod') throw wrongSubject(subject);
    checkPod(this.#options.bindings.pod(subject.podUid), subject, address);
    return this.boundIdentity(subject) ?? subject;
  }

  /** Any tenant may have a ServiceAccount of the name of the gateway's; only that of the release counts. */
  async egressClient(token: string, address: string): Promise<PodIdentity | EgressGatewayIdentity> {
    const subject = await this.#options.verifier.verify(token);
    if (subject.kind === 'egress-gateway' && subject.namespace === this.#options.releaseNamespace) return subject;
    if (subject.kind !== 'egress-client') throw subject.kind === 'pod' ? wrongAudience() : invalidToken();
    checkPod(this.#options.bindings.pod(subject.podUid), subject, address);
    const identity = this.boundIdentity({ ...subject, kind: 'pod' });
    if (identity === undefined) throw new TemperError('TEMPER_POD_NOT_BOUND', 'no agent is bound to this pod');
    return identity;
  }

  /** Any tenant may have a ServiceAccount of the name of the proxy's; only that of the release counts. */
  async egress(token: string): Promise<EgressIdentity> {
    const subject = await this.#options.verifier.verify(token);
    if (subject.kind !== 'egress') throw wrongSubject(subject);
    if (subject.namespace !== this.#options.releaseNamespace) throw invalidToken();
    return subject;
  }

  boundIdentity({ kind, namespace, podName, podUid }: PodToken): PodIdentity | undefined {
    const binding = this.#options.bindings.bindingOf(podUid);
    if (binding.kind === 'conflict') {
      this.#options.onBindingConflict(podUid, binding.agents);
      throw new TemperError('TEMPER_POD_BINDING_CONFLICT', binding.message);
    }
    // A binding of an Agent in another namespace is not valid.
    if (binding.kind === 'unbound' || binding.agent.metadata.namespace !== namespace) return undefined;
    const { name, uid } = binding.agent.metadata;
    return uid === undefined ? undefined : { kind, namespace, podName, podUid, agent: name, agentUid: uid };
  }

  isStillBound(podUid: string, agentUid: string): boolean {
    const binding = this.#options.bindings.bindingOf(podUid);
    return binding.kind === 'bound' && binding.agent.metadata.uid === agentUid;
  }

  /** Any tenant may have a ServiceAccount of the name of the verifiers'; only pods of the release's namespace are in the store. */
  async verifier(token: string, address: string): Promise<VerifierIdentity> {
    const subject = await this.#options.verifier.verify(token);
    if (subject.kind !== 'verifier') throw wrongSubject(subject);
    checkPod(this.#options.verifiers?.pod(subject.podUid), subject, address);
    return subject;
  }

  async user(token: string): Promise<UserIdentity> {
    const subject = await this.#options.verifier.verify(token);
    if (subject.kind !== 'user') throw wrongSubject(subject);
    return subject;
  }

  async peer(token: string): Promise<PeerIdentity> {
    const subject = await this.#options.verifier.verify(token);
    if (subject.kind !== 'peer') throw wrongSubject(subject);
    return subject;
  }
}

/** A token for the egress proxy names a pod, and is valid at the proxy only. */
function wrongSubject({ kind }: TokenSubject): TemperError {
  return kind === 'egress-client' || kind === 'egress-gateway' ? wrongAudience() : invalidToken();
}

function checkPod(
  pod: AgentPod | undefined,
  { podName, namespace }: Pick<PodToken, 'podName' | 'namespace'>,
  address: string,
): void {
  const addresses = pod === undefined ? [] : addressesOf(pod);
  if (pod?.metadata.name !== podName || pod.metadata.namespace !== namespace) {
    throw new TemperError('TEMPER_POD_UNKNOWN', 'no agent pod with this name and UID exists');
  }
  // A container may run before the kubelet reports the address of its pod.
  if (addresses.length === 0) {
    throw new TemperError('TEMPER_POD_STARTING', 'the address of the pod is not known yet', { retry: RETRY_MS });
  }
  if (!addresses.includes(normalAddress(address))) {
    throw new TemperError('TEMPER_POD_ADDRESS_MISMATCH', 'the request does not come from the address of its pod');
  }
}
