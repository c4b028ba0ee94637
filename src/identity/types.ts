/** What a verified token of a pod says. The pod may be warm, which means that no agent is bound to it yet. */
export interface PodToken {
  kind: 'pod';
  namespace: string;
  podName: string;
  podUid: string;
}

/** A pod and the one agent it is. */
export interface PodIdentity extends PodToken {
  /** Name of the agent, in the namespace of the pod. */
  agent: string;
  agentUid: string;
}

/**
 * Somebody who may make tokens of a namespace's `temper-people`. Who that is, the API server's audit log knows; the
 * token does not say.
 */
export interface PersonIdentity {
  kind: 'person';
  namespace: string;
  /** The token's own id (`jti`), for logs. */
  tokenId: string;
}

/** Who calls. Refusals are TemperErrors that say no more than their code does. */
export interface Identity {
  /**
   * The agent whose pod sends this token from this address. Throws TEMPER_TOKEN_INVALID, TEMPER_TOKEN_AUDIENCE,
   * TEMPER_POD_UNKNOWN, TEMPER_POD_STARTING, TEMPER_POD_ADDRESS, TEMPER_POD_NOT_BOUND or TEMPER_POD_BOUND_TWICE.
   */
  pod(token: string, address: string): Promise<PodIdentity>;
  /** The same for a pod that may still be warm: the agent is absent then. */
  podOrWarm(token: string, address: string): Promise<PodToken | PodIdentity>;
  /** Who a pod that was verified is now; undefined while it is warm. Throws TEMPER_POD_BOUND_TWICE. */
  bound(pod: PodToken): PodIdentity | undefined;
  /** Is the pod still that agent? Looked up at what the API server last said, without the token. */
  stillBound(podUid: string, agentUid: string): boolean;
  /** Throws TEMPER_TOKEN_INVALID or TEMPER_TOKEN_AUDIENCE. */
  person(token: string): Promise<PersonIdentity>;
}
