/** The claims of a verified pod token. The pod may be warm: no agent is bound to it yet. */
export interface PodToken {
  kind: 'pod';
  namespace: string;
  podName: string;
  podUid: string;
}

/** A verifier pod, in the namespace of the release. */
export interface VerifierIdentity {
  kind: 'verifier';
  namespace: string;
  podName: string;
  podUid: string;
}

/** A replica of the egress proxy, in the namespace of the release. */
export interface EgressIdentity {
  kind: 'egress';
  namespace: string;
  podName: string;
  podUid: string;
}

/** A gateway that uses the egress proxy for the calls of agents. */
export interface EgressGatewayIdentity {
  kind: 'egress-gateway';
  namespace: string;
  podName: string;
  podUid: string;
}

/** The claims of a token with which an agent pod uses the egress proxy. It is valid for nothing else. */
export interface EgressClientToken {
  kind: 'egress-client';
  namespace: string;
  podName: string;
  podUid: string;
}

/** A pod and the agent that is bound to it. */
export interface PodIdentity extends PodToken {
  /** Name of the agent, in the namespace of the pod. */
  agent: string;
  agentUid: string;
}

/**
 * A user with a token of the ServiceAccount `temper-users` of a namespace. The token does not identify the user; the audit log of the API
 * server records who requested it.
 */
export interface UserIdentity {
  kind: 'user';
  namespace: string;
  /** The token's own id (`jti`), for logs. */
  tokenId: string;
}

/** A ServiceAccount that calls agents over A2A: any of the cluster. Which agents serve it is not part of its identity. */
export interface PeerIdentity {
  kind: 'peer';
  namespace: string;
  /** Name of the ServiceAccount. */
  account: string;
}

/** Authenticates callers. Every failure is a TemperError whose message gives no more detail than its code. */
export interface Authenticator {
  /** Whether the token was verified before and is still valid: a further request with it costs no signature check. */
  isVerified(token: string): boolean;
  /**
   * The agent whose pod sends this token from this source IP address. Throws TEMPER_TOKEN_INVALID, TEMPER_TOKEN_AUDIENCE,
   * TEMPER_POD_UNKNOWN, TEMPER_POD_STARTING, TEMPER_POD_ADDRESS_MISMATCH, TEMPER_POD_NOT_BOUND or TEMPER_POD_BINDING_CONFLICT.
   */
  pod(token: string, address: string): Promise<PodIdentity>;
  /** As `pod`, but a warm pod is accepted too: the result then has no agent. */
  podOrWarm(token: string, address: string): Promise<PodToken | PodIdentity>;
  /** The current identity of a pod whose token was verified; undefined while the pod is warm. Throws TEMPER_POD_BINDING_CONFLICT. */
  boundIdentity(pod: PodToken): PodIdentity | undefined;
  /** Whether the pod exists and is still bound to the agent, and to no other one. Reads the informer caches, without the token. */
  isStillBound(podUid: string, agentUid: string): boolean;
  /**
   * The verifier pod that sends this token from this source IP address. Throws TEMPER_TOKEN_INVALID, TEMPER_TOKEN_AUDIENCE,
   * TEMPER_POD_UNKNOWN, TEMPER_POD_STARTING or TEMPER_POD_ADDRESS_MISMATCH.
   */
  verifier(token: string, address: string): Promise<VerifierIdentity>;
  /** The egress proxy that sends this token. Throws TEMPER_TOKEN_INVALID or TEMPER_TOKEN_AUDIENCE. */
  egress(token: string): Promise<EgressIdentity>;
  /** The agent whose pod sent this token to the egress proxy, from this source IP address, or the gateway that sent it. Throws as `pod` does. */
  egressClient(token: string, address: string): Promise<PodIdentity | EgressGatewayIdentity>;
  /** The user who sends this token. Throws TEMPER_TOKEN_INVALID or TEMPER_TOKEN_AUDIENCE. */
  user(token: string): Promise<UserIdentity>;
  /** The ServiceAccount that calls over A2A with this token. Throws TEMPER_TOKEN_INVALID or TEMPER_TOKEN_AUDIENCE. */
  peer(token: string): Promise<PeerIdentity>;
}
