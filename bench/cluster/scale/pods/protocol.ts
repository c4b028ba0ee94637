/** Messages between the benchmark and a process of simulated pods. */

/** The first message: what all pods of the process share. */
export interface HostMessage {
  readonly kind: 'host';
  /** Certificates of the CA of the gateways, as PEM. */
  readonly authority: string;
  readonly serverName: string;
  readonly ports: readonly number[];
}

/** Starts a pod. */
export interface PodMessage {
  readonly kind: 'pod';
  /** `namespace/name` of the agent. */
  readonly agent: string;
  readonly token: string;
  readonly address: string;
  readonly gateway: number;
}

/** The answer to a `token` report; without a token the API server was away. */
export interface TokenMessage {
  readonly kind: 'token';
  readonly agent: string;
  readonly token?: string;
}

export type ToPods = HostMessage | PodMessage | TokenMessage | { readonly kind: 'stop' };

/** `text` is the agent of an assignment or of a wanted token, the id of a message, or the error of a request. */
export interface PodReport {
  readonly kind: 'assignment' | 'delivery' | 'acked' | 'error' | 'token';
  readonly text: string;
}
