import type { CallOptions } from '../lib/call-options.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { ProxyCredentials } from './request/credentials.ts';

/** A connection that a pod or a gateway asks for. */
export interface ConnectionRequest extends ProxyCredentials {
  /** The address that the request comes from. */
  address: string;
  host: string;
  port: number;
}

/** The agent and the message that an authorized connection belongs to. */
export interface ConnectionOwner {
  /** What the token of the caller proves: a pod of the agent, or a gateway that executes a call of the agent. */
  caller: 'Pod' | 'Gateway';
  agent: string;
  agentUid: string;
  namespace: string;
  session: string;
  message: string;
}

export interface AuthorizedConnection extends ConnectionOwner {
  /** Milliseconds until the deadline of the message. */
  remainingMs: number;
}

/** What an open connection moved since its last report. */
export interface ConnectionReport {
  id: string;
  deliveryToken: string;
  host: string;
  port: number;
  bytes: number;
}

/** A connection that may not stay open. */
export interface EndedConnection {
  id: string;
  code: ErrorCode;
  message: string;
}

/** Decides about connections and charges their bytes. The proxy itself has no policy. */
export interface Authorizer {
  /** Throws the error of the refusal, and TEMPER_GATEWAY_* when nothing decides; the connection is refused then too. */
  authorize(request: ConnectionRequest, op: CallOptions): Promise<AuthorizedConnection>;
  /** Charges the bytes, and names the connections to end. Throws TEMPER_GATEWAY_*; the same bytes are reported again then. */
  report(connections: readonly ConnectionReport[], op: CallOptions): Promise<readonly EndedConnection[]>;
}
