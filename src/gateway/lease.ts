/** What a delivery lease holds: what the gateway copies into everything that is done under it. Signed, never said by the pod. */
export interface LeaseClaims {
  agentUid: string;
  /** Name of the agent. */
  agent: string;
  namespace: string;
  podUid: string;
  /** Id of the message. */
  message: string;
  session: string;
  root: string;
  depth: number;
  /** RFC 3339: after it the chain of messages is worth nothing. */
  deadline: string;
  /** How the delivery is settled at the bus. */
  receipt: string;
}

/** Signs leases and reads them. Any replica with the same keys reads what another signed. */
export interface Leases {
  sign(claims: LeaseClaims): string;
  /** Throws TEMPER_LEASE_INVALID for a text no gateway of this installation signed. Says nothing about the binding: see `leaseOf`. */
  read(lease: string): LeaseClaims;
}
