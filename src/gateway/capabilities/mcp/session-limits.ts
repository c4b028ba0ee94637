/** Open MCP sessions of one gateway. A session holds connections of the egress proxy and of the server. */
export interface PoolLimits {
  perAgent: number;
  perNamespace: number;
  all: number;
  /** Milliseconds without a call, after which a session is closed. */
  idleMs: number;
}

export const SESSION_LIMITS: PoolLimits = { perAgent: 8, perNamespace: 32, all: 256, idleMs: 180_000 };
